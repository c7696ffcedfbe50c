"""Studies of a project: by command and by pages, cost first, stopped and resumed, refused, and as files."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.models import Aspect, Comparison, Output
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.jobs import get_job
from evalapp.common.models import Run
from evalapp.common.queue import retry_run
from evalapp.common.runner import RunReturned, execute_run
from scoring.ml.studies import steps
from scoring.models import StudyStep
from scoring.services.studies import StudyOptions, start_checked, start_study
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings
from tests.pages import read_page
from tests.scoring.ml.tiny import tiny_encoder

pytestmark = pytest.mark.django_db
TEXTS = ("no", "you like tea", "yes i like the tea you like")


@pytest.fixture
def rated(cast: Cast, settings: Any, tmp_path: Any) -> Cast:
    """The cast's project with 24 items, three systems whose ratings rise with the words, and a tiny encoder."""
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"
    settings.ENCODERS = [tiny_encoder("bert", tmp_path / "tiny")]
    outputs = make_outputs(cast.project, make_items(cast.project, 24), ("sys-a", "sys-b", "sys-c"))
    for index, output in enumerate(outputs):
        output.text = f"{TEXTS[index % 3]} {index // 3}"
    Output.objects.bulk_update(outputs, ["text"])
    make_ratings(cast.project, outputs)
    return cast


def ask(settings: Any, **more: Any) -> StudyOptions:
    wanted = {
        "study": "seeds",
        "evaluators": ["ridge"],
        "aspect": "quality",
        "seeds": 2,
        "encoder": settings.ENCODERS[0],
    }
    return StudyOptions(**{**wanted, **more})


def command(settings: Any, *words: str) -> str:
    out = io.StringIO()
    more = ["--encoder", settings.ENCODERS[0], "--here"]
    call_command("study", "alpha", *words, *more, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_command_shows_cost_then_the_table_and_latex(rated, settings):
    words = ["side-by-side", "--evaluator", "ridge", "--evaluator", "length", "--aspect", "quality", "--seeds", "2"]
    assert "3 steps, 0 computed before; 2 trainings; time: " in command(settings, *words, "--check")
    assert not StudyStep.objects.exists()
    found = json.loads(command(settings, *words, "--json"))
    (table,) = found["tables"]
    assert [row["label"] for row in table["rows"]] == ["ridge", "length"]
    # Ridge has a closed form: it is the same with every seed.
    assert len(table["rows"][0]["cells"]["spearman"]["values"]) == 1
    assert found["seeds"] == [13, 14]
    assert found["counts"]["test"]["items"] == 7
    log = Run.objects.get(kind="study").log.values_list("text", flat=True)
    assert log[0].startswith("3 steps, 0 computed before; 2 trainings; time: ")
    # The same again trains nothing.
    assert "3 steps, 3 computed before; nothing to train." in command(settings, *words, "--check")
    text = command(settings, *words)
    assert "Spearman, systems" in text
    assert "Measured on 7 items of 7 groups (30 %)" in text
    latex = command(settings, *words, "--as", "tex")
    assert r"\begin{tabular}{l" in latex
    assert r"ridge & $" in latex
    assert StudyStep.objects.count() == 3


def test_trained_rows_are_compared_with_ridge(rated, settings, client):
    words = ["seeds", "--evaluator", "adem", "--aspect", "quality", "--seeds", "1"]
    text = command(settings, *words)
    assert "Spearman, over ridge" in text
    assert "Over ridge: difference from ridge" in text
    run = Run.objects.get(kind="study")
    (table,) = run.result["tables"]
    assert [row["label"] for row in table["rows"]] == ["adem", "ridge"]
    assert run.params["evaluators"] == ["adem"]
    over = table["rows"][0]["cells"]["over_rival:spearman"]
    own, rival = (row["cells"]["spearman"]["value"] for row in table["rows"])
    assert over["value"] == pytest.approx(own - rival, abs=1e-5)
    client.force_login(rated.viewer)
    shown = reverse("scoring:study", args=["alpha", run.pk])
    assert "Spearman, over ridge" in read_page(client.get(shown))
    rows = list(csv.DictReader(io.StringIO(client.get(f"{shown}table.csv").content.decode())))
    assert "over_rival:spearman" in {row["figure"] for row in rows}


def test_scores_of_systems_are_compared_with_m1(rated, settings, client):
    aspect = Aspect.objects.get(project=rated.project, name="quality")
    outputs = Output.objects.filter(project=rated.project).select_related("system").order_by("item", "pk")
    place = {item: k for k, item in enumerate(dict.fromkeys(output.item_id for output in outputs))}
    # Longer texts are more often as good as the reference.
    Comparison.objects.bulk_create(
        Comparison(
            project=rated.project, output_a=output, reference=0, aspect=aspect, rater="judge",
            verdict="tie" if place[output.item_id] % 5 < 2 * "abc".index(output.system.name[-1]) else "b",
        )
        for output in outputs
    )  # fmt: skip
    text = command(settings, "p-sys", "--aspect", "quality", "--seeds", "1", "--set", "epochs=1")
    assert "M1: quality" in text
    assert "these systems, 95 % over groups of items" in text
    run = Run.objects.get(kind="study")
    systems, orders = run.result["tables"]
    m1 = {row["label"]: row["cells"]["m1:quality"]["value"] for row in systems["rows"]}
    assert m1["sys-a"] == 0
    assert m1["sys-b"] < m1["sys-c"]
    assert [row["label"] for row in orders["rows"]] == ["perception", "ridge"]
    cells = {row["label"]: row["cells"] for row in orders["rows"]}
    over = cells["perception"]["over_rival:m1_spearman"]["value"]
    expected = cells["perception"]["m1_spearman"]["value"] - cells["ridge"]["m1_spearman"]["value"]
    assert over == pytest.approx(expected)
    client.force_login(rated.viewer)
    shown = read_page(client.get(reverse("scoring:study", args=["alpha", run.pk])))
    assert "Spearman with M1, over ridge" in shown


def test_pages_from_check_to_table_figure_and_latex(rated, settings, client):
    url = reverse("scoring:study-list", args=["alpha"])
    client.force_login(rated.researcher)
    assert "New study" in read_page(client.get(url))
    form = {"study": "side-by-side", "evaluators": ["ridge", "length"], "aspect": "", "seeds": 1,
            "held_out": 30, "seed": 13, "encoder": settings.ENCODERS[0]}  # fmt: skip
    sent = client.post(url, form)
    check = Run.objects.get(kind="study-plan")
    assert sent.headers["Location"] == f"{url}?check={check.pk}#check"
    assert "Checking in" in read_page(client.get(f"{url}?check={check.pk}"))
    assert execute_run(check.pk).state == "succeeded"
    page = read_page(client.get(f"{url}?check={check.pk}"))
    assert "Start study" in page
    assert not Run.objects.filter(kind="study").exists()
    sent = client.post(reverse("scoring:study-start", args=["alpha"]), {"check": check.pk})
    run = Run.objects.get(kind="study")
    assert sent.headers["Location"] == reverse("run", args=["alpha", run.pk])
    shown = reverse("scoring:study", args=["alpha", run.pk])
    assert "waiting" in read_page(client.get(shown))
    assert execute_run(run.pk).state == "succeeded", Run.objects.get(pk=run.pk).error
    page = read_page(client.get(shown))
    for text in ("ridge", "length", "Spearman, systems", r"\begin{tabular}", "95 % over groups of items", "letters"):
        assert text in page, text
    assert client.get(reverse("scoring:study-svg", args=["alpha", run.pk])).content.startswith(b"<svg")
    assert client.get(f"{shown}?column=kendall").status_code == 200
    rows = list(csv.DictReader(io.StringIO(client.get(f"{shown}table.csv").content.decode())))
    assert {row["row"] for row in rows} == {"ridge", "length"}
    assert json.loads(client.get(f"{shown}table.json").content)["study"] == "side-by-side"
    assert rb"\begin{tabular}" in client.get(f"{shown}table.tex").content
    client.force_login(rated.viewer)
    assert client.get(shown).status_code == 200
    assert "New study" not in read_page(client.get(url))
    assert client.post(url, form).status_code == 403


def test_stopped_study_resumes_with_the_missing_steps_only(rated, settings, monkeypatch):
    computed = []
    compute = steps.compute_step

    def stop_at_the_third(step: Any, *args: Any) -> Any:
        if len(computed) == 2:
            raise RunReturned
        computed.append(step.label)
        return compute(step, *args)

    monkeypatch.setattr(steps, "compute_step", stop_at_the_third)
    run = start_study(project=rated.project, options=ask(settings, seeds=3), send=False)
    assert execute_run(run.pk).state == "queued"
    assert computed == ["ridge, seed 13", "ridge, seed 14"]
    assert StudyStep.objects.count() == 2

    def count(step: Any, *args: Any) -> Any:
        computed.append(step.label)
        return compute(step, *args)

    monkeypatch.setattr(steps, "compute_step", count)
    done = execute_run(run.pk)
    assert done.state == "succeeded", done.error
    assert computed == ["ridge, seed 13", "ridge, seed 14", "ridge, seed 15"]
    # Another study of the same data shares the trainings; new data share none.
    again = start_study(project=rated.project, options=ask(settings, study="side-by-side", seeds=4), send=False)
    assert execute_run(again.pk).state == "succeeded"
    assert computed[3:] == ["ridge, seed 16"]
    Output.objects.filter(item__key="i000").update(text="the cat ran")
    later = start_study(project=rated.project, options=ask(settings, seeds=1), send=False)
    assert execute_run(later.pk).state == "succeeded"
    assert computed[4:] == ["ridge, seed 13"]


def test_cancelled_study_shows_how_to_continue(rated, settings, client):
    from evalapp.common.queue import cancel_run

    run = start_study(project=rated.project, options=ask(settings), send=False)
    cancel_run(run=run)
    client.force_login(rated.researcher)
    assert "to continue: finished steps are kept" in read_page(
        client.get(reverse("scoring:study", args=["alpha", run.pk]))
    )
    assert retry_run(run=Run.objects.get(pk=run.pk)).state == "queued"


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"study": "seed"}, "study", "must be one of seeds, ablation"),
        ({"evaluators": ["length"]}, "evaluators", "which takes: .*ridge"),
        ({"study": "ablation", "evaluators": ["ridge"]}, "evaluators", "which takes: .*comparative"),
        ({"aspect": "beauty"}, "aspect", "some of: quality"),
        ({"seeds": 0}, "seeds", "from 1 to 20"),
        ({"options": {"pace": "3"}}, "options.pace", "No evaluator of this study"),
        ({"evaluators": ["shared-bert"], "options": {"epochs": "many"}}, "options.epochs", "epochs"),
        ({"profile": "fast"}, "profile", "must be one of recommended"),
        ({"encoder": "/etc"}, "encoder", "not allowed here"),
    ],
)
def test_refused_requests_name_the_field(rated, settings, wrong, field, words):
    with pytest.raises(BadInput, match=words) as refused:
        start_study(project=rated.project, options=ask(settings, **wrong), send=False)
    assert [fault.field for fault in refused.value.faults] == [field]
    assert not Run.objects.exists()


def test_data_that_can_train_nothing_are_explained(cast, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    make_outputs(cast.project, make_items(cast.project, 24), ("sys-a", "sys-b"))
    with pytest.raises(CommandError, match="can train no evaluator of the study"):
        call_command(
            "study", "alpha", "seeds", "--evaluator", "ridge", "--here", stdout=io.StringIO(), stderr=io.StringIO()
        )
    run = start_study(project=cast.project, options=StudyOptions("robustness", ["length"]), send=False)
    assert "wrong answers" in execute_run(run.pk).error


def test_only_a_check_that_succeeded_can_be_started(rated, settings):
    check = get_job("study-plan").ask(
        project=rated.project, user=None, params={"study": "seeds", "evaluators": ["ridge"]}
    )
    with pytest.raises(Conflict, match="Check again"):
        start_checked(project=rated.project, user=None, check=check)
