from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation.plan import OPTIONS, read_plan

LEAST = {"name": "How natural?", "kind": "likert", "aspects": ["naturalness"]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def problems(**changes):
    plan, found = read_plan({**LEAST, **changes})
    assert (plan is None) == bool(found)
    return [field for field, _ in found]


def test_defaults():
    plan, found = read_plan(LEAST)
    assert found == []
    assert plan is not None
    assert (plan.slug, plan.overlap, plan.lease_minutes, plan.seed) == ("how-natural", 1, 30, 13)
    assert (plan.aspects[0].low, plan.aspects[0].high, plan.aspects[0].question) == (1, 5, "Naturalness?")
    assert plan.selection.as_dict() == {"items": {}, "systems": [], "pairs": None, "steps": "all"}
    assert plan.options == OPTIONS


def test_list_labels_map_to_scale_points():
    aspect = {"name": "natural", "low": 1, "high": 5, "step": 2, "labels": ["bad", "fair", "good"]}
    plan, _ = read_plan({**LEAST, "aspects": [aspect]})
    assert plan is not None
    assert plan.aspects[0].labels == {"1": "bad", "3": "fair", "5": "good"}


def test_comparisons_show_the_last_step_by_default():
    plan, _ = read_plan({**LEAST, "kind": "pairwise"})
    assert plan is not None
    assert plan.selection.steps == "last"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"name": ""}, ["name"]),
        ({"slug": "No Spaces"}, ["slug"]),
        ({"kind": "other"}, ["kind"]),
        ({"aspects": []}, ["aspects"]),
        ({"aspects": ["a", "a"]}, ["aspects"]),
        ({"aspects": [{"name": "a", "low": 5, "high": 1}]}, ["aspects[0].high"]),
        ({"aspects": [{"name": "a", "step": 0}]}, ["aspects[0].step"]),
        ({"aspects": [{"name": "a", "colour": 1}]}, ["aspects[0].colour"]),
        ({"overlap": 0}, ["overlap"]),
        ({"overlap": True}, ["overlap"]),
        ({"lease_minutes": 0}, ["lease_minutes"]),
        ({"max_per_annotator": -1}, ["max_per_annotator"]),
        ({"items": {"sample": 0}}, ["items.sample"]),
        ({"items": {"keys": "i1"}}, ["items.keys"]),
        ({"items": {"domain": [1]}}, ["items.domain"]),
        ({"systems": [3]}, ["systems[0]"]),
        ({"pairs": 3}, ["pairs"]),
        ({"steps": "first"}, ["steps"]),
        ({"options": None}, []),
        ({"options": 0}, ["options"]),
        ({"options": {"control_rate": 0.9}}, ["options.control_rate"]),
        ({"options": {"speed": 1}}, ["options.speed"]),
        ({"options": {"allow_skip": 1}}, ["options.allow_skip"]),
        ({"practice": [{"item": "i"}]}, ["practice[0]"]),
        ({"practice": [{"item": "i", "system": "s"}]}, ["practice[0].expected"]),
        ({"controls": [{"item": "i", "system": "s", "expected": {"x": 9}}]}, ["controls[0].expected.x"]),
        ({"unheard": 1}, ["unheard"]),
    ],
)  # fmt: skip
def test_errors_name_their_field(changes, wrong):
    assert problems(**changes) == wrong


def test_all_errors_are_reported_at_once():
    assert problems(overlap=0, kind="x", systems=3) == ["kind", "overlap", "systems"]


@given(st.dictionaries(st.sampled_from(["name", "kind", "aspects", "items", "systems", "options", "practice", "controls", "pairs", "overlap", "slug"]), JSON) | JSON)  # fmt: skip  # noqa: E501
def test_no_plan_crashes_the_parser(raw):
    plan, found = read_plan(raw)
    assert (plan is None) == bool(found)


def test_systems_by_name_and_step_and_checks_of_pairs():
    plan, found = read_plan(
        {
            **LEAST,
            "kind": "pairwise",
            "systems": ["a", {"system": "b", "step": 30}],
            "practice": [
                {"item": "i", "systems": [{"system": "a"}, {"system": "b", "step": 30}],
                 "expected": {"naturalness": ["a", "tie"]}, "why": "Because."}
            ],
        }
    )  # fmt: skip
    assert found == []
    assert plan is not None
    assert plan.selection.systems == (("a", None), ("b", 30))
    assert plan.selection.as_dict()["systems"] == ["a", {"system": "b", "step": 30}]
    check = plan.practice[0]
    assert (check.system, check.system_b, check.step_b) == ("a", "b", 30)


def test_the_plans_of_the_demonstration_can_be_read():
    path = Path(__file__).resolve().parents[3] / "evalapp" / "demo" / "campaigns.json"
    for raw in json.loads(path.read_text()):
        plan, found = read_plan(raw)
        assert found == []
        assert plan is not None


def test_listed_outputs_keep_their_chances():
    outputs = [{"item": "i1", "system": "a", "chance": 0.25}, {"item": "i1", "system": "b", "step": 3}]
    plan, problems = read_plan(
        {"name": "N", "kind": "likert", "aspects": ["x"], "outputs": outputs, "chosen": {"reason": "sample"}}
    )
    assert problems == []
    stored = plan.selection.as_dict()
    assert stored["outputs"] == [
        {"item": "i1", "system": "a", "step": None, "chance": 0.25},
        {"item": "i1", "system": "b", "step": 3, "chance": None},
    ]
    assert stored["chosen"] == {"reason": "sample"}


@pytest.mark.parametrize(
    ("changes", "where", "message"),
    [
        ({"outputs": [{"item": "i1", "system": "a", "chance": 2}]}, "outputs[0]", "from 0 to 1"),
        ({"outputs": [{"item": "i1"}]}, "outputs[0]", "An output is"),
        ({"outputs": [{"item": "i1", "system": "a"}] * 2}, "outputs", "listed twice"),
        ({"outputs": [{"item": "i1", "system": "a"}], "systems": ["a"]}, "outputs", "not both"),
        ({"outputs": [{"item": "i1", "system": "a"}], "kind": "pairwise"}, "outputs", "Only a rating campaign"),
        ({"outputs": [{"item": "i1", "system": "a"}], "chosen": {"by": []}}, "chosen", "texts and numbers"),
        ({"outputs": "all"}, "outputs", "Use a list"),
    ],
)
def test_wrong_lists_of_outputs_are_named(changes, where, message):
    plan, problems = read_plan({"name": "N", "kind": "likert", "aspects": ["x"], **changes})
    assert plan is None
    assert any(place == where and message in text for place, text in problems), problems
