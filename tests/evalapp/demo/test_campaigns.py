"""The campaign plans are accepted by `read_plan` and fit the data that `build` writes."""

from __future__ import annotations

import json

import pytest

from annotation.allocation.plan import read_plan
from evalapp.demo.systems import STEPS, SYSTEMS
from evalapp.demo.texts import CAMPAIGNS, read_items

PLANS = {plan["kind"]: plan for plan in json.loads(CAMPAIGNS.read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def outputs() -> set[tuple[str, str, int | None]]:
    """Available outputs: every system on every item, the n-gram model at each step (shown in test_build)."""
    shown: list[tuple[str, int | None]] = [(row["id"], None) for row in SYSTEMS if row["id"] != "ngram"]
    shown += [("ngram", step) for step in STEPS]
    return {(item.id, *one) for item in read_items() for one in shown}


def test_there_is_one_plan_of_each_kind() -> None:
    assert list(PLANS) == ["likert", "pairwise", "turing"]


@pytest.mark.parametrize("kind", PLANS)
def test_plan_is_parsed_without_errors(kind: str) -> None:
    plan, problems = read_plan(PLANS[kind])
    assert problems == []
    assert plan is not None
    assert len(plan.practice) == 3
    assert len(plan.controls) >= 2
    assert all(check.why for check in plan.practice)
    assert 200 < len(plan.guidelines) < 1500


@pytest.mark.parametrize("kind", PLANS)
def test_systems_and_items_exist(kind: str, outputs: set[tuple[str, str, int | None]]) -> None:
    plan = PLANS[kind]
    domains = {item.domain: item.id for item in read_items()}
    item = domains["restaurants" if kind == "pairwise" else "dialogue"]
    for name in plan["systems"]:
        assert (item, name, max(STEPS) if name == "ngram" else None) in outputs
    assert plan["steps"] == "last"
    assert plan["items"]["search"] in item


@pytest.mark.parametrize("kind", PLANS)
def test_cases_exist(kind: str, outputs: set[tuple[str, str, int | None]]) -> None:
    plan = PLANS[kind]
    references = {item.id: len(item.references) for item in read_items()}
    cases = plan["practice"] + plan["controls"]
    assert len({case["item"] for case in cases}) == len(cases)
    for case in cases:
        names = [case["system"], *([case["system_b"]] if "system_b" in case else [])]
        for name in names:
            assert (case["item"], name, None) in outputs
        assert case.get("reference", 0) < references[case["item"]]


def test_likert_plan_asks_for_forty_outputs() -> None:
    plan = PLANS["likert"]
    assert plan["items"]["sample"] * len(plan["systems"]) == 40
    assert plan["overlap"] == 2
    assert [aspect["name"] for aspect in plan["aspects"]] == ["naturalness", "relevance"]
    assert all(len(aspect["labels"]) == 5 for aspect in plan["aspects"])
