"""Judging and writing plans share one parser for their common parts."""

from __future__ import annotations

import pytest

from annotation.allocation.plan import read_plan
from annotation.allocation.writing_plan import read_writing_plan

PLANS = {
    "judging": (read_plan, {"name": "n", "kind": "likert", "aspects": ["naturalness"]}),
    "writing": (read_writing_plan, {"name": "n"}),
}


@pytest.fixture(params=PLANS)
def problems(request):
    read, least = PLANS[request.param]
    return lambda **more: read(least | more)[1]


@pytest.mark.parametrize(
    "items",
    [
        None,
        "all",
        {},
        40,
        {"sample": 40, "seed": -7},
        {"keys": ["i1"]},
        {"groups": []},
        {"search": "x", "domain": True},
    ],
)
def test_item_selection_is_parsed(problems, items):
    assert problems(items=items) == []


@pytest.mark.parametrize(
    ("items", "where"),
    [
        (-1, "items"), (True, "items"), ("some", "items"), ([], ""), (["i1"], "items"), ({"sample": 0}, "items.sample"),
        ({"sample": True}, "items.sample"), ({"seed": 0.5}, "items.seed"), ({"seed": 2**70}, "items.seed"),
        ({"keys": "i1"}, "items.keys"), ({"groups": [1]}, "items.groups"), ({"search": 1}, "items.search"),
        ({"domain": []}, "items.domain"),
    ],
)  # fmt: skip
def test_wrong_item_selection_is_refused(problems, items, where):
    assert [place for place, _ in problems(items=items)] == ([where] if where else [])


@pytest.mark.parametrize("name", ["lease_minutes", "max_per_annotator", "seed"])
def test_only_whole_numbers_are_accepted(problems, name):
    assert problems(**{name: None}) == []
    for wrong in (-1, 2**40, 1.5, True, "7"):
        assert [place for place, _ in problems(**{name: wrong})] == [name]


def test_texts_and_options(problems):
    assert [place for place, _ in problems(guidelines=["a"], options=[1], colour="red")] == [
        "colour", "guidelines", "options"
    ]  # fmt: skip
    assert problems(guidelines=None, options=None) == []


def test_wrong_choices_are_answered_with_the_choices():
    """The constraint has an empty choice, which is not listed."""
    for options in ({"constraint": "loud"}, {"arms": []}):
        ((field, message),) = read_writing_plan({"name": "n", "options": options})[1]
        assert field == f"options.{next(iter(options))}"
        assert ": ," not in message
        assert "free" in message or "one or more of: " in message
