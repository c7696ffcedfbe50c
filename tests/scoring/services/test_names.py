"""Names of evaluators: taken, reserved by a run, and messages about an evaluator that is not ready."""

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


def test_name_reserved_by_a_run_belongs_to_it(cast):
    run = making(cast.project)
    with pytest.raises(Conflict, match=f"Run {run.pk} is creating an evaluator named “compare”"):
        free_slug(cast.project, "comparative", "compare")
    assert free_slug(cast.foreign, "comparative", "compare") == "compare"
    making(cast.project, "comparative-1", kind="combine")
    assert free_slug(cast.project, "comparative", "") == "comparative-2"


@pytest.mark.parametrize("end", [{"cancel_requested": True}, {"state": Run.State.FAILED}, {"params": {}}])
def test_run_without_a_result_reserves_no_name(cast, end):
    making(cast.project, **end)
    assert free_slug(cast.project, "comparative", "compare") == "compare"


@pytest.mark.parametrize(
    ("name", "way"),
    [("chrf", "is reserved by evalapp: choose another"), ("mine", "choose another, or delete that evaluator")],
)
def test_named_evaluator_keeps_its_name(cast, name, way):
    Evaluator.objects.create(project=cast.project, slug="mine", name="chrf")
    with pytest.raises(Conflict, match=re.escape(way)):
        free_slug(cast.project, "comparative", name)


def test_unready_evaluator_refers_to_its_run(cast):
    said = f"^compare is not ready: run {making(cast.project).pk} is in progress"
    for ask in (
        lambda: find_trained(cast.project, "compare"),
        lambda: find_judge(cast.project, "compare"),
        lambda: get_job("score").ask(project=cast.project, user=cast.researcher, params={"evaluator": "compare"}),
    ):
        with pytest.raises(NotThere, match=said):
            ask()
    with pytest.raises(NotThere, match=r"“compare” .*alpha-foreign"):
        find_trained(cast.foreign, "compare")


def test_its_page_and_the_api_also_say_so(cast, client):
    said = f"compare is not ready: run {making(cast.project).pk} is in progress"
    client.force_login(cast.researcher)
    page = client.get(reverse("scoring:evaluator", args=[cast.project.slug, "compare"]))
    assert (page.status_code, said in page.content.decode()) == (404, True)
    runs = f"/api/v1/projects/{cast.project.slug}/runs/"
    asked = client.post(runs, {"kind": "score", "evaluator": "compare"}, content_type="application/json")
    assert (asked.status_code, said in asked.json()["detail"]) == (404, True)
