"""An evaluator can be deleted when no run needs it; otherwise the refusal names the run."""

from __future__ import annotations

import pytest
from django.urls import reverse

from annotation.models import WritingCampaign
from evalapp.common.errors import Conflict
from evalapp.common.jobs import all_jobs
from evalapp.common.models import Run
from scoring.models import Evaluator
from scoring.services.evaluators import delete_evaluator, names_in
from tests.scoring.training import make_trained

pytestmark = pytest.mark.django_db

#: How each kind of run refers to evaluators; the other kinds refer to none.
NAMING = {
    "select-references": {"evaluator": "mine", "mix": "other"},
    "preview-references": {"evaluator": "other", "mix": "mine"},
    "artefact": {"slug": "mine"},
    "combine": {"parts": ["length", "mine"], "slug": "combined-1"},
    "games": {"evaluator": "mine"},
    "rank": {"board": "systems", "query": {"by": "mine"}},
    "refit": {"evaluator": "mine", "until": 50},
    "reliability": {"evaluator": "other", "other": "mine"},
    "robustness": {"evaluator": "mine", "options": {}},
    "score": {"evaluator": "mine", "options": {}},
    "selection": {"evaluators": ["length", "mine"]},
    "train": {"evaluator": "maude", "slug": "mine"},
}


@pytest.fixture
def mine(cast, settings, tmp_path) -> Evaluator:
    settings.ARTEFACTS_DIR = tmp_path
    return make_trained(cast.project, "mine")


def asked(project, kind: str, **rest) -> Run:
    given = {"params": NAMING.get(kind, {}), "title": f"{kind} with mine", "input_hash": kind, **rest}
    return Run.objects.create(project=project, kind=kind, **given)


@pytest.mark.parametrize("state", ["queued", "running"])
@pytest.mark.parametrize("kind", sorted(NAMING))
def test_evaluator_needed_by_a_run_stays(mine, kind, state):
    run = asked(mine.project, kind, state=state)
    with pytest.raises(Conflict) as refused:
        delete_evaluator(evaluator=mine)
    assert refused.value.detail.startswith(f"Run {run.pk} ({kind} with mine) is {run.get_state_display().lower()} ")
    Run.objects.filter(pk=run.pk).update(state="failed")
    delete_evaluator(evaluator=mine)
    assert not Evaluator.objects.exists()


@pytest.mark.parametrize("query", [{"assist": "mine"}, {"evaluators": "length,mine"}])
def test_evaluator_in_a_table_that_is_being_computed_stays(mine, query):
    asked(mine.project, "rank", params={"board": "systems", "query": query}, state="running")
    with pytest.raises(Conflict, match="rank with mine"):
        delete_evaluator(evaluator=mine)


def test_runs_with_other_evaluators_do_not_matter(mine, cast):
    asked(cast.foreign, "games")
    asked(cast.project, "score", params={"evaluator": "yours"})
    asked(cast.project, "plan", params={"evaluator": "maude", "name": "mine"})
    delete_evaluator(evaluator=mine)
    assert not Evaluator.objects.exists()


@pytest.mark.parametrize("state", ["open", "paused"])
def test_evaluator_of_a_writing_campaign_stays(mine, cast, state):
    campaign = WritingCampaign.objects.create(
        project=cast.project, slug="more", name="More", evaluator="mine", state=state
    )
    WritingCampaign.objects.create(project=cast.foreign, slug="more", name="Theirs", evaluator="mine", state=state)
    with pytest.raises(Conflict) as refused:
        delete_evaluator(evaluator=mine)
    assert all(name in refused.value.detail for name in ("“More”", "mine"))
    WritingCampaign.objects.filter(pk=campaign.pk).update(state="closed")
    delete_evaluator(evaluator=mine)
    assert not Evaluator.objects.exists()


def test_every_kind_of_run_is_covered():
    """A new kind has a line in `NAMING`, or refers to no evaluator."""
    without = {"judge", "judge-check", "plan", "study", "study-plan"}
    kinds = {job.kind for job in all_jobs() if job.pipeline.startswith("scoring.") and not job.is_former}
    assert kinds - set(NAMING) == without
    assert names_in({"evaluators": None, "query": None, "evaluator": 3, "name": "x"}) == set()


def test_page_shows_it_and_the_api_refuses(mine, cast, client):
    run = asked(cast.project, "robustness")
    client.force_login(cast.researcher)
    page = client.post(reverse("scoring:evaluator-delete", args=["alpha", "mine"]))
    assert page.status_code == 200
    text = page.content.decode()
    assert f"Run {run.pk} (robustness with mine) is" in text
    assert "Delete mine?" in text
    answer = client.delete("/api/v1/projects/alpha/evaluators/trained/mine/")
    assert (answer.status_code, f"Run {run.pk}" in answer.json()["detail"]) == (409, True)
    assert Evaluator.objects.filter(slug="mine").exists()


def test_page_names_rankings_by_its_games(mine, cast, client):
    client.force_login(cast.researcher)
    told = "Rankings of systems by its games are deleted as well"

    def page() -> str:
        return client.get(reverse("scoring:evaluator-delete", args=["alpha", "mine"])).content.decode()

    asked(cast.project, "games", state="succeeded", result={"judge": mine.pk + 1})
    assert told not in page()
    asked(cast.project, "games", state="succeeded", result={"judge": mine.pk}, input_hash="again")
    assert told in page()
