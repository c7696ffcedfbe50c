"""Ratings and comparisons of a human reference without an output row (FAULTS F3; WebNLG 2020 has them)."""

from __future__ import annotations

import pytest

from annotation.models import Output, Rating
from tests.taking import list_errors, list_named, take_in, written

pytestmark = pytest.mark.django_db
ITEMS = [{"id": "i1", "references": ["First.", "Second."]}, {"id": "i2", "references": []}]
OUTPUTS = [{"item": item["id"], "system": "m", "text": "t"} for item in ITEMS]
SYSTEMS = [{"id": "human", "kind": "reference"}]


def _rating(item="i1", system="human", rater="r", **more):
    return {"item": item, "system": system, "rater": rater, "aspect": "q", "value": 1, **more}


@pytest.fixture
def project(cast):
    return cast.project


FILES = {"items.jsonl": ITEMS, "outputs.jsonl": OUTPUTS, "systems.jsonl": SYSTEMS, "ratings.jsonl": [_rating()]}


@pytest.mark.parametrize("apart", [False, True])
def test_first_reference_becomes_an_output(project, tmp_path, apart):
    comparison = {"item": "i1", "system_a": "m", "system_b": "human", "rater": "r", "aspect": "p", "verdict": "b"}
    judged = {"ratings.jsonl": [_rating(), _rating(rater="s")], "comparisons.jsonl": [comparison]}
    rest = {name: rows for name, rows in FILES.items() if name not in judged}
    if apart:
        assert take_in(project, rest).state == "done"
    upload = take_in(project, judged if apart else {**rest, **judged})
    assert upload.state == "done", list_errors(upload)
    output = Output.objects.get(system__name="human")
    assert (output.text, output.meta, output.system.kind) == ("First.", {"from_reference": 0}, "reference")
    assert Rating.objects.filter(output=output).count() == 2
    # Loading it again changes nothing, and the dump loads as an equal project.
    before = written(project, tmp_path / "a")
    assert all(counts["same"] == counts["rows"] for counts in take_in(project, judged).counts.values())
    assert written(project, tmp_path / "b") == before


def test_kinds_option_selects_the_reference(project):
    files = {name: rows for name, rows in FILES.items() if name != "systems.jsonl"}
    upload = take_in(project, files, system_kinds={"human": "reference"})
    assert upload.state == "done", list_errors(upload)
    assert Output.objects.get(system__name="human").text == "First."


def test_reference_with_an_output_keeps_it(project):
    outputs = [*OUTPUTS, {"item": "i1", "system": "human", "text": "Own."}]
    assert take_in(project, {**FILES, "outputs.jsonl": outputs}).state == "done"
    assert Output.objects.get(system__name="human").text == "Own."


def test_no_output_without_a_reference_or_for_another_kind(project):
    upload = take_in(project, {**FILES, "ratings.jsonl": [_rating(item="i2")]})
    assert list_named(upload) == [("ratings.jsonl:1", "system", {"human", "i2"})]
    files = {**FILES, "systems.jsonl": [{"id": "human", "kind": "human"}]}
    assert list_named(take_in(project, files)) == [("ratings.jsonl:1", "system", {"human", "i1"})]
