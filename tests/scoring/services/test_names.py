"""Names of evaluators: what has one, what is just getting one, and what is said of an evaluator that is not ready."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from evalapp.common.errors import Conflict, NotThere
from evalapp.common.jobs import get_job
from evalapp.common.models import Run
from scoring.models import Evaluator
from scoring.selectors.games import find_judge
from scoring.selectors.training import find_trained
from scoring.services.training import free_slug

pytestmark = pytest.mark.django_db


def making(project, slug="compare", **rest):
    given = {"kind": "train", "state": Run.State.RUNNING, "params": {"slug": slug}, "input_hash": slug, **rest}
    return Run.objects.create(project=project, **given)


def test_a_name_that_a_run_will_give_is_that_runs(cast):
    run = making(cast.project)
    with pytest.raises(Conflict, match=f"Run {run.pk} is making an evaluator named “compare”"):
        free_slug(cast.project, "comparative", "compare")
    assert free_slug(cast.foreign, "comparative", "compare") == "compare"
    making(cast.project, "comparative-1", kind="combine")
    assert free_slug(cast.project, "comparative", "") == "comparative-2"


@pytest.mark.parametrize("end", [{"cancel_requested": True}, {"state": Run.State.FAILED}, {"params": {}}])
def test_a_run_that_gives_none_keeps_none(cast, end):
    making(cast.project, **end)
    assert free_slug(cast.project, "comparative", "compare") == "compare"


@pytest.mark.parametrize(
    ("name", "way"),
    [("chrf", "by what evalapp itself calls so: choose another"), ("mine", "choose another, or delete that evaluator")],
)
def test_what_has_a_name_keeps_it(cast, name, way):
    Evaluator.objects.create(project=cast.project, slug="mine", name="chrf")
    with pytest.raises(Conflict, match=re.escape(way)):
        free_slug(cast.project, "comparative", name)


def test_whoever_asks_for_one_that_is_not_ready_is_told_of_its_run(cast):
    said = f"^compare is not ready: run {making(cast.project).pk} is still making it"
    for ask in (
        lambda: find_trained(cast.project, "compare"),
        lambda: find_judge(cast.project, "compare"),
        lambda: get_job("score").ask(project=cast.project, user=cast.researcher, params={"evaluator": "compare"}),
    ):
        with pytest.raises(NotThere, match=said):
            ask()
    with pytest.raises(NotThere, match="No evaluator “compare” was trained in alpha-foreign"):
        find_trained(cast.foreign, "compare")


def test_its_page_and_the_api_say_so_too(cast, client):
    said = f"compare is not ready: run {making(cast.project).pk} is still making it"
    client.force_login(cast.researcher)
    page = client.get(reverse("scoring:evaluator", args=[cast.project.slug, "compare"]))
    assert (page.status_code, said in page.content.decode()) == (404, True)
    runs = f"/api/v1/projects/{cast.project.slug}/runs/"
    asked = client.post(runs, {"kind": "score", "evaluator": "compare"}, content_type="application/json")
    assert (asked.status_code, said in asked.json()["detail"]) == (404, True)
