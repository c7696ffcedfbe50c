from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation.writing_plan import CONSTRAINTS, OPTIONS, find_opening_problems, read_writing_plan

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


def test_draft_needs_only_a_name():
    plan, problems = read_writing_plan({"name": "More replies, please!"})
    assert problems == []
    assert (plan.slug, plan.kind, plan.options) == ("more-replies-please", "ream", OPTIONS)
    assert find_opening_problems(plan)[0][0] == "evaluator"


def test_open_campaign_needs_its_required_fields():
    def missing(**fields):
        plan, problems = read_writing_plan({"name": "n", **fields})
        assert problems == []
        return [where for where, _ in find_opening_problems(plan)]

    assert missing(evaluator="e") == []
    assert missing(options={"arms": ["control"]}) == []
    assert missing(options={"arms": ["control"], "mode": "rounds"}) == ["corpus"]
    assert missing(options={"arms": ["control", "candidates"]}) == ["corpus"]
    assert missing(options={"arms": ["control"], "own_text": False}) == ["corpus"]
    assert missing(evaluator="e", corpus="c", options={"mode": "rounds", "own_text": False}) == []


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_constraint_takes_one_text_without_scores(constraint):
    plan, problems = read_writing_plan({"name": "n", "kind": "constraint", "options": {"constraint": constraint}})
    assert problems == []
    assert plan.options["arms"] == ["control"]
    assert plan.options["target"] == 1
    assert plan.options["confirmations"] == (constraint == "better-than-original")
    # The page's form always sends a number. Without confirmations, no text is marked better than the original.
    options = {"constraint": constraint, "confirmations": 0}
    again, _ = read_writing_plan({"name": "n", "kind": "constraint", "options": options})
    assert again is not None
    assert again.options["confirmations"] == plan.options["confirmations"]


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        ([], ""),
        ({}, "name"),
        ({"name": "n", "colour": 1}, "colour"),
        ({"name": "n", "kind": "likert"}, "kind"),
        ({"name": "n", "slug": "No Slug"}, "slug"),
        ({"name": "n", "lease_minutes": 0}, "lease_minutes"),
        ({"name": "n", "items": {"keys": "i1"}}, "items.keys"),
        ({"name": "n", "items": {"sample": True}}, "items.sample"),
        ({"name": "n", "options": False}, "options"),
        ({"name": "n", "options": {"arms": []}}, "options.arms"),
        ({"name": "n", "options": {"arms": ["control", "control"]}}, "options.arms"),
        ({"name": "n", "options": {"arms": [{}]}}, "options.arms"),
        ({"name": "n", "options": {"mode": "turns"}}, "options.mode"),
        ({"name": "n", "options": {"max_attempts": 0}}, "options.max_attempts"),
        ({"name": "n", "options": {"min_gain": -0.1}}, "options.min_gain"),
        ({"name": "n", "options": {"min_gain": float("nan")}}, "options.min_gain"),
        ({"name": "n", "options": {"target": 2.5}}, "options.target"),
        ({"name": "n", "options": {"own_text": "yes"}}, "options.own_text"),
        ({"name": "n", "options": {"speed": 1}}, "options.speed"),
        ({"name": "n", "options": {"constraint": "free"}}, "options.constraint"),
        ({"name": "n", "options": {"confirmations": 1}}, "options.confirmations"),
        ({"name": "n", "kind": "constraint", "options": {"arms": ["scores"]}}, "options.arms"),
        ({"name": "n", "kind": "constraint", "options": {"mode": "rounds"}}, "options.mode"),
        ({"name": "n", "kind": "constraint", "options": {"own_text": False}}, "options.own_text"),
        ({"name": "n", "kind": "constraint", "options": {"constraint": ""}}, "options.constraint"),
    ],
)
def test_error_names_its_field(raw, where):
    plan, problems = read_writing_plan(raw)
    assert plan is None
    assert where in [field for field, _ in problems]


@given(JSON, st.dictionaries(st.sampled_from([*OPTIONS, "other"]), JSON, max_size=4))
def test_no_document_crashes_the_parser(document, options):
    for raw in (document, {"name": "n", "options": options}, {"name": "n", "kind": "constraint", "options": options}):
        plan, problems = read_writing_plan(raw)
        assert (plan is None) == bool(problems)
