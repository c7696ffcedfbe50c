"""The scores of any evaluator can be deleted, by page and API, unless a run needs them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalapp.common.errors import Conflict
from evalapp.common.models import AuditEvent, Run
from scoring.models import Evaluator, Score, ScoreSet
from scoring.selectors.leaderboards import compute_stamp
from scoring.services.scores import delete_scores
from tests.pages import read_page
from tests.scoring.training import make_trained

pytestmark = pytest.mark.django_db


def get_set(slug: str) -> ScoreSet:
    return ScoreSet.objects.get(evaluator__slug=slug)


def test_baseline_is_deleted_with_its_last_set(scored, score):
    score(scored.project, "random", options={"seed": "7"})
    before = compute_stamp(scored.project)
    found = get_set("random")
    assert delete_scores(score_set=found, user=scored.researcher)
    assert not Evaluator.objects.filter(slug="random").exists()
    assert not Score.objects.filter(score_set=found.pk).exists()
    assert Evaluator.objects.filter(slug="random-seed-7").exists(), "another, of the same name in the catalogue"
    assert compute_stamp(scored.project) != before, "leaderboards are made anew"
    event = AuditEvent.objects.get(verb="scores.deleted")
    assert (event.actor, event.detail["n_scores"]) == (scored.researcher, 24)


def test_one_of_several_sets_is_deleted_and_the_evaluator_stays(scored):
    old = get_set("length")
    ScoreSet.objects.create(project=scored.project, evaluator=old.evaluator, signature="length|v:0")
    assert not delete_scores(score_set=old)
    assert get_set("length").signature == "length|v:0"


def test_trained_evaluator_stays(cast, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    trained = make_trained(cast.project, "mine")
    found = ScoreSet.objects.create(project=cast.project, evaluator=trained, signature="mine")
    run = Run.objects.create(project=cast.project, kind="score", title="Score", params={"evaluator": "mine"})
    with pytest.raises(Conflict, match=f"Run {run.pk} .Score. is waiting and uses mine"):
        delete_scores(score_set=found)
    run.delete()
    assert not delete_scores(score_set=found)
    assert Evaluator.objects.get() == trained


@pytest.mark.parametrize(
    ("kind", "params", "is_refused"),
    [
        ("score", {"evaluator": "random", "options": "mine"}, True),
        ("score", {"evaluator": "random", "options": {"seed": "7"}}, False),
        ("score", {"evaluator": "length", "options": "mine"}, False),
        ("combine", {"parts": ["length", "random"]}, True),
        ("selection", {"evaluators": ["random"]}, True),
    ],
)
def test_scores_needed_by_a_run_stay(scored, kind, params, is_refused):
    found = get_set("random")
    if params.get("options") == "mine":
        params = {**params, "options": found.evaluator.options}
    run = Run.objects.create(project=scored.project, kind=kind, title="Wants", params=params, state="running")
    if is_refused:
        with pytest.raises(Conflict, match=f"Run {run.pk} "):
            delete_scores(score_set=found)
    else:
        assert delete_scores(score_set=found)
    assert Evaluator.objects.filter(slug="random").exists() == is_refused


def test_page_asks_for_confirmation_and_the_api_deletes(scored, client):
    client.force_login(scored.researcher)
    found = get_set("random")
    address = reverse("scoring:scores-delete", args=["alpha", "random"]) + f"?set={found.pk}"
    shown = read_page(client.get(reverse("scoring:evaluator", args=["alpha", "random"])))
    assert address in shown
    asked = read_page(client.get(address))
    assert "24 scores" in asked
    assert 'data-last="random"' in asked
    run = Run.objects.create(
        project=scored.project, kind="selection", title="Wants", params={"evaluators": ["random", "length"]}
    )
    assert f"Run {run.pk} (Wants) is waiting" in read_page(client.post(address))
    length = get_set("length")
    api = f"/api/v1/projects/alpha/scores/{length.pk}/"
    assert client.delete(api).status_code == 409
    run.delete()
    assert client.post(address)["Location"] == reverse("scoring:evaluator-list", args=["alpha"])
    assert not Evaluator.objects.filter(slug="random").exists()
    assert client.delete(api).status_code == 204
    assert client.delete(api).status_code == 404
    assert client.delete(f"/api/v1/projects/alpha/scores/{10**30}/").status_code == 404
    client.force_login(scored.viewer)
    left = get_set("token-f1")
    assert client.delete(f"/api/v1/projects/alpha/scores/{left.pk}/").status_code == 403
    assert client.get(reverse("scoring:scores-delete", args=["alpha", "token-f1"])).status_code == 403


def test_page_of_failed_scores_gives_the_reason_and_retries(scored, client):
    client.force_login(scored.researcher)
    run = Run.objects.create(
        project=scored.project, kind="score", title="Score", state="failed", error="No such device: foo."
    )
    ScoreSet.objects.filter(evaluator__slug="random").update(scored_at=None, run=run, summary=[])
    page = read_page(client.get(reverse("scoring:evaluator", args=["alpha", "random"])))
    assert f"{run.error.rstrip('.')} (run {run.pk})" in page
    assert reverse("run-retry", args=["alpha", run.pk]) in page
    assert "data-stale" not in page
    assert "not complete" in read_page(client.get(reverse("scoring:evaluator-list", args=["alpha"])))
