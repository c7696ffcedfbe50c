"""The selection report of a project: which checkpoint or variant each evaluator selects, by command, API and page."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.models import Aspect, Output, Rating, System
from evalapp.common.errors import BadInput
from evalapp.common.jobs import get_job
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.ml import load
from scoring.ml.selection import VARIANT_OF as IN_THE_LIBRARY
from scoring.pipelines import checkpoint_selection as pipeline
from scoring.selectors.reports import VARIANT_OF
from tests.factories import make_items
from tests.pages import read_page

pytestmark = pytest.mark.django_db


@pytest.fixture
def checkpoints(cast, score):
    """One system at steps 10, 20, 30, rated 2, 5, 3, with texts that grow; two variants, the shorter rated higher. Ten
    items, each its own group. Applied: length."""
    aspect = Aspect.objects.create(project=cast.project, name="quality", low=1, high=5)
    meta = {VARIANT_OF: "net"}
    systems = [
        System.objects.create(project=cast.project, name=name, declared=True, meta=meta if name != "net" else {})
        for name in ("net", "wide", "deep")
    ]
    made = [(systems[0], 10, 2, 2), (systems[0], 20, 4, 5), (systems[0], 30, 6, 3)]
    made += [(systems[1], None, 5, 1), (systems[2], None, 3, 4)]
    for item in make_items(cast.project, 10):
        for system, step, words, value in made:
            output = Output.objects.create(
                project=cast.project, item=item, system=system, step=step, text="word " * words
            )
            Rating.objects.create(project=cast.project, output=output, aspect=aspect, rater="r", value=value)
    score(cast.project, "length")
    return cast


def report(*words: str) -> str:
    out = io.StringIO()
    call_command("selection", "alpha", *words, "--here", stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_report(checkpoints):
    assert VARIANT_OF == IN_THE_LIBRARY
    found = json.loads(report("--json"))
    assert (found["aspect"], found["n_items"], found["n_learned"], found["judged_by"]) == ("quality", 10, 0, "ratings")
    rows = {(row["evaluator"], row["kind"]): row for row in found["rows"]}
    # The longest are step 30, rated 3 instead of the possible 5, and the variant rated 1 instead of 4.
    steps, variants = rows[("length", "steps")], rows[("length", "variants")]
    assert (steps["wins"], steps["runs"], steps["human"]["value"]) == (0, 10, 3.0)
    assert (variants["wins"], variants["human"]["value"]) == (0, 1.0)
    assert found["best"] == {"steps": 5.0, "variants": 4.0}
    assert found["chance"]["steps"] == pytest.approx(10 / 3)
    assert {pick["picked"] for pick in found["picks"] if pick["kind"] == "steps"} == {"30"}
    assert found["signatures"]["length"].startswith("length|")
    text = report("--evaluator", "length", "--evaluator", "distinct-1", "--runs", "5", "--variants", "mine=wide,deep")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "length 0 of 5 3.000 [3.000, 3.000]" in lines
    assert "(people's best) 5 of 5 5.000" in lines
    assert Run.objects.filter(kind="selection").latest("pk").params["variants"] == {"mine": ["wide", "deep"]}


def test_training_data_of_an_evaluator_are_excluded(checkpoints, monkeypatch):
    """Its choice among texts that it was trained to prefer would mean nothing."""

    def learned(project, name, aspect):
        found = load(name)
        found.trained_on = {f"g{number:03d}" for number in range(n)}
        return found

    monkeypatch.setattr(pipeline, "_load", learned)
    n = 4
    found = json.loads(report("--json"))
    assert (found["n_items"], found["n_learned"]) == (6, 4)
    assert {row["runs"] for row in found["rows"]} == {6}
    assert "4 items are left out" in report()
    n = 10
    with pytest.raises(CommandError, match="training data of at least one evaluator"):
        report("--seed", "2")


def test_impossible_requests_are_explained(checkpoints):
    def ask(**params):
        return get_job("selection").ask(project=checkpoints.project, user=None, params=params)

    with pytest.raises(BadInput, match="evaluators "):
        ask(evaluators="length")
    with pytest.raises(BadInput, match="variants "):
        ask(variants={"a": "wide"})
    with pytest.raises(BadInput, match="pace is unknown"):
        ask(pace=1)
    with pytest.raises(BadInput, match="alpha: flat"):
        ask(variants={"a": ["wide", "flat"]})
    with pytest.raises(BadInput, match=r"runs .*1 to 100"):
        ask(runs=0)
    with pytest.raises(BadInput, match=r"comparative .*trained"):
        ask(evaluators=["comparative"])
    assert ask(evaluators=["length"]).pk == ask(evaluators=["length"]).pk
    Output.objects.exclude(step=10).delete()
    System.objects.filter(name="deep").delete()
    with pytest.raises(BadInput, match="alpha has nothing to select from"):
        ask()


def test_page_requests_and_shows_the_report(checkpoints, client):
    page, door = reverse("scoring:steps", args=["alpha"]), reverse("scoring:choose", args=["alpha"])
    client.force_login(checkpoints.researcher)
    assert "Not computed yet." in read_page(client.get(page))
    sent = client.post(door, {"aspect": "quality", "by": ["length"], "references": "original"})
    run = Run.objects.get(kind="selection")
    assert sent.headers["Location"] == reverse("run", args=["alpha", run.pk])
    assert f"run {run.pk}</a> (waiting" in read_page(client.get(page))
    assert execute_run(run.pk).state == "succeeded"
    shown = read_page(client.get(page))
    assert "Choices among steps" in shown
    assert "Choices among variants" in shown
    assert '<th scope="row">length</th> <td class="num">0 of 10</td> <td class="num">3.000</td>' in shown
    refused = client.post(door, {"aspect": "quality", "by": ["nothing"]}, follow=True)
    assert 'data-level="error"' in read_page(refused)
    assert "“nothing”" in read_page(refused)
    client.force_login(checkpoints.viewer)
    assert "Recalculate" not in read_page(client.get(page))
    assert client.post(door).status_code == 403


def test_navigation_to_variants_without_steps(checkpoints, client):
    """The table of systems links to the page of checkpoints even if no system has any."""
    client.force_login(checkpoints.viewer)
    page = "/projects/alpha/systems/?method=mean"
    link = re.compile(r'id="choices"> ?<a href="/projects/alpha/systems/steps/')
    assert link.search(read_page(client.get(page)))
    Output.objects.filter(step__isnull=False).delete()
    page += "&systems=machine"  # a table that was not stored before
    assert link.search(read_page(client.get(page)))
    assert client.get("/projects/alpha/systems/steps/").status_code == 200
    System.objects.update(meta={})
    assert not link.search(read_page(client.get(page)))
