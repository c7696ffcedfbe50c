"""Several evaluators at once: what is scored, what is left alone, and the estimate, on the page, by API and command."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone
from lxml import html

from annotation.models import Item, Output, Reference
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.models import ScoreSet
from scoring.services.scores import apply_evaluator
from scoring.services.several import plan_scores, score_several
from tests.factories import make_items, make_outputs
from tests.pages import read_flashes

pytestmark = pytest.mark.django_db


def outcomes(project, *names, **rest):
    return {plan.evaluator: plan.outcome for plan in plan_scores(project=project, evaluators=names, **rest)}


def test_only_what_is_missing_is_queued(scored):
    runs, rest = score_several(project=scored.project, evaluators=["length", "overlap", "chrf", "random"])
    assert {run.params["evaluator"] for run in runs} == {"overlap", "chrf"}
    assert {plan.evaluator: plan.outcome for plan in rest} == {"length": "current", "random": "current"}
    again, rest = score_several(project=scored.project, evaluators=["overlap", "chrf"])
    assert not again
    assert {plan.outcome for plan in rest} == {"under-way"}


def test_each_gets_its_default_options(scored):
    runs, _rest = score_several(project=scored.project, evaluators=["chrf", "rouge-l"])
    for run in runs:
        alone = apply_evaluator(project=scored.project, evaluator=run.params["evaluator"], send=False)
        assert alone.pk == run.pk, "the same request"


def test_other_usual_names_mean_the_same(scored):
    """`bleu` and `chrF++` are what other libraries call metrics of the catalogue, as in `evalapp.ml.load`."""
    runs, _rest = score_several(project=scored.project, evaluators=["bleu", "chrF++"])
    assert [run.params["evaluator"] for run in runs] == ["bleu-corpus", "chrf"]
    assert runs[1].params["options"]["word_order"] == 2
    again = apply_evaluator(project=scored.project, evaluator="BLEU")
    assert again.pk == runs[0].pk
    own = apply_evaluator(project=scored.project, evaluator="chrF++", options={"word_order": 1})
    assert own.params["options"]["word_order"] == 1


def test_changed_texts_and_other_options_are_scored_again(scored, score):
    score(scored.project, "chrf", options={"word_order": 2})
    assert outcomes(scored.project, "chrf", "length") == {"chrf": "new", "length": "current"}
    make_outputs(scored.project, list(Item.objects.filter(project=scored.project)), ("sys-new",))
    assert outcomes(scored.project, "length") == {"length": "changed"}


def test_reasons_against_one_do_not_stop_the_others(scored):
    Reference.objects.all().delete()
    plans = plan_scores(project=scored.project, evaluators=["bleu-4", "overlap", "maude", "bleurt"])
    assert {plan.evaluator: plan.outcome for plan in plans} == {
        "bleu-4": "refused", "overlap": "new", "maude": "refused", "bleurt": "refused",
    }  # fmt: skip
    assert all(plan.why for plan in plans if plan.outcome == "refused")
    runs, _rest = score_several(project=scored.project, evaluators=["bleu-4", "overlap"])
    assert [run.params["evaluator"] for run in runs] == ["overlap"]


@pytest.mark.parametrize(
    "names", [[], ["no-such"], ["length", "no-such"], ["length"] * 2 + [f"x{i}" for i in range(101)]]
)
def test_unknown_names_queue_nothing(scored, names):
    before = Run.objects.count()
    with pytest.raises(BadInput) as error:
        score_several(project=scored.project, evaluators=names)
    assert [fault.field for fault in error.value.faults] == ["evaluators"]
    assert Run.objects.count() == before


def test_time_is_that_of_the_last_run(scored):
    now = timezone.now()
    Run.objects.create(
        project=scored.project, kind="score", title="x", input_hash="x", state="succeeded",
        params={"evaluator": "chrf"}, result={"scored": 1000}, started_at=now - timedelta(seconds=50), finished_at=now,
    )  # fmt: skip
    n = Output.objects.filter(project=scored.project).count()
    (chrf, bertscore, bleu) = plan_scores(project=scored.project, evaluators=["chrf", "bertscore", "bleu-4"])
    assert chrf.is_measured
    assert chrf.seconds == pytest.approx(n * 0.05)  # 50 s for 1,000 outputs
    assert not bertscore.is_measured
    assert bertscore.seconds > bleu.seconds


def test_plan_needs_few_queries(scored, django_assert_max_num_queries, client):
    client.force_login(scored.researcher)
    names = ["bleu-1", "bleu-2", "bleu-4", "chrf", "rouge-l", "meteor", "bertscore", "overlap", "length"]
    address = reverse("scoring:score-selected", args=["alpha"]) + "?" + "&".join(f"evaluators={name}" for name in names)
    client.get(address)
    with django_assert_max_num_queries(15):
        page = html.fromstring(client.get(address).content)
    rows = {row.findtext("th").strip(): row.get("data-outcome") for row in page.xpath("//tr[@data-outcome]")}
    assert rows == {**dict.fromkeys(names, "new"), "length": "current"}


def test_page_from_tick_boxes_to_runs(scored, client):
    """Without script: the form of the catalogue, its confirmation, and the list of runs."""
    client.force_login(scored.researcher)
    catalogue = html.fromstring(client.get(reverse("scoring:evaluator-list", args=["alpha"])).content)
    (form,) = catalogue.xpath("//form[@id='score-form']")
    values = form.xpath(".//input[@name='evaluators']/@value")
    assert {"length", "bleu-4", "chrf"} <= set(values)
    assert "maude" not in values, "it must be trained first"
    assert not form.xpath(".//input[@checked]"), "scores exist: nothing is preselected"
    answer = client.get(form.get("action"), {"evaluators": ["length", "chrf", "overlap"]})
    (confirm,) = html.fromstring(answer.content).xpath("//form[@method='post'][.//input[@name='evaluators']]")
    fields = {"evaluators": confirm.xpath(".//input[@name='evaluators']/@value"), "references": "original"}
    response = client.post(reverse("scoring:score-selected", args=["alpha"]), fields)
    assert response.url == reverse("run-list", args=["alpha"]) + "?kind=score"
    assert set(Run.objects.filter(state="queued").values_list("params__evaluator", flat=True)) == {"chrf", "overlap"}


def test_trivial_baselines_are_preselected_at_first(cast, client):
    make_outputs(cast.project, make_items(cast.project, 2), ("sys-a",))
    client.force_login(cast.researcher)
    page = html.fromstring(client.get(reverse("scoring:evaluator-list", args=["alpha"])).content)
    assert set(page.xpath("//input[@name='evaluators'][@checked]/@value")) == {"length", "overlap", "random"}


def test_nothing_selected_returns_to_the_catalogue(scored, client):
    client.force_login(scored.researcher)
    response = client.get(reverse("scoring:score-selected", args=["alpha"]))
    assert response.url == reverse("scoring:evaluator-list", args=["alpha"])


def test_api_scores_with_several(scored, client):
    client.force_login(scored.researcher)
    address = reverse("api-score-list", args=["alpha"])
    body = {"evaluators": ["length", "chrf"], "dry_run": True}
    answer = client.post(address, body, content_type="application/json")
    assert (answer.status_code, answer.json()["runs"]) == (202, [])
    assert [row["outcome"] for row in answer.json()["plan"]] == ["current", "new"]
    answer = client.post(address, {**body, "dry_run": False}, content_type="application/json").json()
    assert [run["title"] for run in answer["runs"]] == ["Score with chrf"]
    refused = client.post(address, {"evaluators": ["no-such"]}, content_type="application/json")
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["field"] == "evaluators"


def test_command_scores_with_several(scored, capsys):
    call_command("score", "length", "chrf", "overlap", project="alpha", here=True)
    assert set(ScoreSet.objects.filter(scored_at__isnull=False).values_list("evaluator__slug", flat=True)) >= {
        "chrf", "overlap",
    }  # fmt: skip
    assert not Run.objects.filter(params__evaluator="length", state="queued").exists()
    with pytest.raises(CommandError):
        call_command("score", "length", "chrf", project="alpha", here=True, options=[("lowercase", "true")])


def test_reference_set_is_that_of_the_request(scored):
    with pytest.raises(BadInput):
        plan_scores(project=scored.project, evaluators=[], references="original")
    (plan,) = plan_scores(project=scored.project, evaluators=["chrf"], references="no-such-set")
    assert plan.outcome == "refused"
    run = execute_run(score_several(project=scored.project, evaluators=["chrf"])[0][0].pk)
    assert run.params["references"] == "original"


def test_selection_without_new_runs_says_why(scored, client):
    def send(*names: str) -> list[tuple[str, str]]:
        fields = {"evaluators": names, "references": "original"}
        return read_flashes(client.post(reverse("scoring:score-selected", args=["alpha"]), fields, follow=True))

    client.force_login(scored.researcher)
    assert [level for level, _text in send("length")] == ["success"]
    assert [level for level, _text in send("chrf")] == ["success"]
    assert Run.objects.filter(state="queued").count() == 1
    assert [level for level, _text in send("chrf")] == ["info"], "its run is under way"
    ((level, text),) = send("maude")
    assert level == "warning"
    assert text.startswith("maude: ")
    assert Run.objects.filter(state="queued").count() == 1
