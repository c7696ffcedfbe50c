"""Curves of reliability, and a selection of references, by a real cross-fitted `ream` on a tiny encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.models import Aspect, Item, Output, Rating, Reference, ReferenceSet, System
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.ml import Dataset, cross_fit
from scoring.models import Evaluator, SelectionTrace
from scoring.pipelines.publishing import describe
from scoring.pipelines.reliability_curves import Line
from scoring.services.reports import CurveOptions, start_curves
from tests.scoring.ml.evaluators.ream.test_evaluator import QUICK, data
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.reference_selection import select_references

pytestmark = pytest.mark.django_db
DATA = data(12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Artefacts of two evaluators for two metrics, in two folds each."""
    place = tmp_path_factory.mktemp("artefacts")
    encoder = tiny_encoder("bert", place / "encoder")
    for name, metric in (("one", "token-f1"), ("two", "chrf")):
        options: dict[str, Any] = {**QUICK, "epochs": 1, "metric": metric, "encoder": encoder}
        cross_fit("ream", DATA, folds=2, folder=place / f"work-{name}", **options).save_pretrained(place / name)
    return place


def store(project: Project, dataset: Dataset) -> None:
    """Stores the dataset as rows."""
    original = ReferenceSet.objects.create(project=project, name="original")
    aspect = Aspect.objects.create(project=project, name="overall", low=1, high=5)
    systems = {row.system: row.system for row in dataset.outputs}
    made = {name: System.objects.create(project=project, name=name) for name in systems}
    items = {}
    for row in dataset.items:
        items[row.id] = Item.objects.create(project=project, key=row.id, context=list(row.context), group=row.group)
        for position, text in enumerate(row.references):
            Reference.objects.create(set=original, item=items[row.id], position=position, text=text)
    for output, rating in zip(dataset.outputs, dataset.ratings, strict=True):
        stored = Output.objects.create(
            project=project, item=items[output.item], system=made[output.system], text=output.text
        )
        Rating.objects.create(project=project, output=stored, aspect=aspect, rater=rating.rater, value=rating.value)


@pytest.fixture
def project(cast, folder, settings):
    from scoring.ml import load

    settings.ARTEFACTS_DIR = folder
    store(cast.project, DATA)
    for name in ("one", "two"):
        found = load(folder / name, verify=False)
        Evaluator.objects.create(
            project=cast.project, slug=name, name="ream", kind="trained", folder=name, signature=found.signature,
            record=describe(found, folder / name), options=dict(found.members[0].settings),
        )  # fmt: skip
    return cast.project


def curves(project: Project, **options: Any) -> Run:
    run = execute_run(start_curves(project=project, options=CurveOptions(**options), send=False).pk)
    assert run is not None
    return run


def test_curves_of_one_and_transfer_to_another(project) -> None:
    run = curves(project, evaluator="one", other="two", max=6)
    assert run.state == Run.State.SUCCEEDED, run.error
    found = run.result
    assert (found["metric"], found["other_metric"], found["n_items"]) == ("token-f1", "chrf", 12)
    assert set(found["panels"]) == {"size", "noise", "growth", "predicted", "transfer", "transfer-other"}
    size = {line["name"]: line["points"] for line in found["panels"]["size"]["lines"]}
    assert [point["x"] for point in size["gold"]] == [1, 2, 3, 5]
    assert all(-1 <= point["low"] <= point["value"] <= point["high"] <= 1 for point in size["gold"])
    noise = {line["name"]: line["points"] for line in found["panels"]["noise"]["lines"]}
    assert list(noise) == ["references, gold", "noisy, gold", "references, predicted", "noisy, predicted"]
    # Both begin with the same half.
    for kind in ("gold", "predicted"):
        clean, noisy = ([p["value"] for p in noise[f"{name}, {kind}"]] for name in ("references", "noisy"))
        assert len(clean) == 5
        # Equal sets are read among different others, so they are equal up to rounding.
        assert clean[:3] == pytest.approx(noisy[:3], abs=1e-6)
        assert clean[3:] != pytest.approx(noisy[3:], abs=1e-6)
    growth = {line["name"]: line["points"] for line in found["panels"]["growth"]["lines"]}
    assert list(growth) == ["chosen", "3 chosen, then random", "random"]
    # All orders start with the same reference and share the first half.
    assert growth["chosen"][0] == growth["random"][0]
    assert [p["value"] for p in growth["chosen"][:3]] == [p["value"] for p in growth["3 chosen, then random"][:3]]
    predicted = found["panels"]["predicted"]["lines"][0]["points"]
    assert [p["value"] for p in predicted] == sorted(
        p["value"] for p in predicted
    )  # it only takes references that it rates better
    names = [line["name"] for line in found["panels"]["transfer-other"]["lines"]]
    assert names == ["chosen for chrf", "chosen for token-f1", "random"]
    row = found["table"][0]
    assert row["r2"] == pytest.approx(1 - row["mse"] / row["constant"])
    assert row["ceiling"] <= 1
    assert found["n_simulated"] == 0
    Rating.objects.filter(output__item__key="i0").update(simulated=True)
    again = curves(project, evaluator="one", other="two", max=6)
    assert again.result["panels"] == found["panels"]
    assert again.result["n_simulated"] == Rating.objects.filter(output__item__key="i0").count() > 0


def test_each_fold_selects_for_unseen_items(project) -> None:
    run = select_references(project, evaluator="one", mix="two", into="mixed", controls=True)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert run.result["in_training"] == 0
    assert run.result["mean_after"] >= run.result["mean_before"]
    trace = SelectionTrace.objects.filter(set__name="mixed").first()
    assert {step["evaluator"] for step in trace.steps} == {"one", "two"}
    assert Reference.objects.filter(set__name="mixed-raw").count() == 12


def test_missing_curves_are_explained(project) -> None:
    with pytest.raises(BadInput, match="differs from the first"):
        curves(project, evaluator="one", other="one")
    Rating.objects.all().delete()
    run = curves(project, evaluator="one")
    assert run.state == Run.State.FAILED
    assert "0 items" in run.error


def test_the_interval_resamples_groups() -> None:
    line = Line("x")
    for group, value in (("a", 0.0), ("a", 0.0), ("b", 1.0), ("b", 1.0), ("c", float("nan"))):
        line.add(1, group, value)
    (point,) = line.as_dict(0)["points"]
    assert (point["value"], point["low"], point["high"], point["n"]) == (0.5, None, None, 4)
    assert point["note"] == "no interval: 2 groups only, at least 5 are needed"
    for group in "defghi":
        line.add(1, group, 0.5)
    (point,) = line.as_dict(0)["points"]
    assert 0 < point["low"] < point["value"] == 0.5 < point["high"] < 1
