"""An evaluator that comes trained, in a project: command, API, pages, and the mark of its training texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Item
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.runner import execute_run
from scoring.live import answering
from scoring.ml import load
from scoring.ml import shipped as shipped_package
from scoring.ml.artefact import weights_hash
from scoring.models import Evaluator, Score, ScoreSet
from scoring.selectors.catalogue import list_shipped
from scoring.selectors.training import list_trained
from scoring.services import online
from scoring.services.scores import apply_evaluator
from scoring.services.several import plan_scores, score_several
from scoring.services.training import check_name
from tests.factories import make_items, make_outputs
from tests.pages import read_page
from tests.scoring.ml.shipped.small import build_small, list_turns

pytestmark = pytest.mark.django_db
NAME = "maude-base"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small evaluator in place of the shipped one; its training texts are known here."""
    folder = tmp_path_factory.mktemp("shipped")
    evaluator = build_small(folder, folder / NAME)
    return folder / NAME, weights_hash(evaluator.artefact.network)


@pytest.fixture
def project(cast, settings, tmp_path, monkeypatch, built):
    folder, weights = built
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"
    monkeypatch.setattr(shipped_package.Shipped, "folder", folder)
    changed = {NAME: replace(shipped_package.SHIPPED[NAME], weights=weights)}
    for place in ("scoring.ml.shipped", "scoring.ml.registry"):
        monkeypatch.setattr(f"{place}.SHIPPED", changed)
    make_outputs(cast.project, make_items(cast.project, 3))
    return cast.project


def test_scoring_adds_it_to_the_project(project):
    run = execute_run(apply_evaluator(project=project, evaluator=NAME, send=False).pk)
    assert run is not None
    assert run.state == "succeeded", run.error
    row = Evaluator.objects.get()
    assert (row.slug, row.name, row.kind, row.run) == (NAME, "maude", Evaluator.Kind.TRAINED, run)
    assert list(list_trained(project)) == [row]
    assert row.signature == load(NAME).signature
    assert (run.result["scored"], run.result["in_training"]) == (6, 0)
    expected = load(NAME).score([row.record for row in _list_inputs(project)])
    assert sorted(Score.objects.values_list("value", flat=True)) == pytest.approx(sorted(expected.tolist()), abs=1e-6)
    # Again: nothing is scored, and nothing is added.
    again = execute_run(apply_evaluator(project=project, evaluator=NAME, send=False).pk)
    assert again is not None
    assert (again.result["scored"], again.result["kept"]) == (0, 6)
    assert Evaluator.objects.count() == ScoreSet.objects.count() == 1


def _list_inputs(project):
    from scoring.selectors.inputs import iterate_inputs

    return [row for chunk in iterate_inputs(project, references=None) for row in chunk]


def test_projects_with_its_training_texts_are_marked(project):
    own = load(NAME).record
    seen = next(turns for number, turns in enumerate(list_turns()) if f"dialogue:d{number}" in own.groups)
    Item.objects.filter(key="i001").update(context=seen[:2])
    Item.objects.filter(key="i002").update(context=["d1", "a dialogue of that name but other text"])
    run = execute_run(apply_evaluator(project=project, evaluator=NAME, send=False).pk)
    assert run is not None
    assert run.result["in_training"] == 2
    marked = Score.objects.filter(in_training=True).values_list("output__item__key", flat=True)
    assert set(marked) == {"i001"}


def test_its_name_is_known_and_reserved(project):
    (plan,) = plan_scores(project=project, evaluators=[NAME])
    assert (plan.outcome, plan.n_outputs) == ("new", 6)
    runs, _rest = score_several(project=project, evaluators=[NAME])
    assert [run.params["evaluator"] for run in runs] == [NAME]
    with pytest.raises(Conflict, match="reserved"):
        check_name(project, NAME)
    with pytest.raises(BadInput, match=NAME):
        apply_evaluator(project=project, evaluator="maude")


def test_scores_of_that_name_from_elsewhere_are_not_replaced(project):
    Evaluator.objects.create(project=project, slug=NAME, name="theirs", kind=Evaluator.Kind.BASELINE)
    with pytest.raises(Conflict, match=NAME):
        apply_evaluator(project=project, evaluator=NAME)


def test_online_scores_need_no_project(project, cast, monkeypatch):
    models = answering.WarmModels(1)
    monkeypatch.setattr(answering, "warm_models", lambda: models)
    monkeypatch.setattr(online, "ask_live", lambda request, asker: answering.execute(request, lambda: None))
    pairs = [{"text": "cat sat", "context": ["you like tea"]}, {"text": "cat sat"}]
    found = online.ask_evaluator(user=cast.researcher, evaluator=NAME, request={"kind": "score", "pairs": pairs})
    assert found["signature"] == load(NAME).signature
    assert 0 < found["scores"][0] < 1
    assert found["scores"][1] is None, "no context"


def test_pages_offer_it(project, cast):
    client = Client()
    client.force_login(cast.researcher)
    apply = reverse("scoring:evaluator-apply", args=[project.slug, NAME])
    train = read_page(client.get(reverse("scoring:train", args=[project.slug, "maude"])))
    for page in (read_page(client.get(reverse("scoring:evaluator-list", args=[project.slug]))), train):
        assert apply in page
        assert list_shipped()[NAME].summary in page
    assert apply not in read_page(client.get(reverse("scoring:train", args=[project.slug, "ruber"])))
    assert client.get(apply).status_code == 200
    assert client.post(apply, {"option_device": "auto"}).status_code == 302
    execute_run(project.runs.get(kind="score").pk)
    shown = read_page(client.get(reverse("scoring:evaluator", args=[project.slug, NAME])))
    assert "Imported" in shown
    assert "Self-dialogue Corpus" in shown
    # From now on it is among the trained evaluators of the project.
    assert "Trained elsewhere" not in read_page(client.get(reverse("scoring:evaluator-list", args=[project.slug])))
