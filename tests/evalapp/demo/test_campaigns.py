"""The campaign plans fit the data that `build` writes."""

from __future__ import annotations

import pytest

from evalapp.demo.systems import STEPS, SYSTEMS
from evalapp.demo.texts import read_campaigns, read_items

PLANS = {plan["kind"]: plan for plan in read_campaigns()}
VERDICTS = {"pairwise": {"a", "b", "tie", "both_bad"}, "turing": {"a", "b", "cannot_decide"}}


@pytest.fixture(scope="module")
def outputs() -> set[tuple[str, str, int | None]]:
    """What exists: every system on every item, the n-gram model at each step (shown in test_build)."""
    shown: list[tuple[str, int | None]] = [(row["id"], None) for row in SYSTEMS if row["id"] != "ngram"]
    shown += [("ngram", step) for step in STEPS]
    return {(item.id, *one) for item in read_items() for one in shown}


def test_there_is_one_plan_of_each_kind() -> None:
    assert list(PLANS) == ["likert", "pairwise", "turing"]


@pytest.mark.parametrize("kind", PLANS)
def test_plan_is_complete(kind: str, outputs: set[tuple[str, str, int | None]]) -> None:
    plan = PLANS[kind]
    domains = {item.domain: item.id for item in read_items()}
    for entry in plan["systems"]:
        assert (domains[plan["items"]["domain"]], entry["system"], entry.get("step")) in outputs
    assert len(plan["practice"]) == 3
    assert len(plan["controls"]) >= 2
    assert all(case["why"] for case in plan["practice"])
    assert 200 < len(plan["guidelines"]) < 1500


@pytest.mark.parametrize("kind", PLANS)
def test_cases_exist_and_have_a_right_answer(kind: str, outputs: set[tuple[str, str, int | None]]) -> None:
    plan = PLANS[kind]
    references = {item.id: len(item.references) for item in read_items()}
    aspects = {aspect["name"]: aspect for aspect in plan["aspects"]}
    cases = plan["practice"] + plan["controls"]
    assert len({case["item"] for case in cases}) == len(cases)
    for case in cases:
        for shown in case.get("systems", [case]):
            assert (case["item"], shown["system"], shown.get("step")) in outputs
        assert case.get("reference", 0) < references[case["item"]]
        assert set(case["expected"]) <= set(aspects)
        for name, right in case["expected"].items():
            if kind == "likert":
                assert aspects[name]["min"] <= right[0] <= right[1] <= aspects[name]["max"]
            else:
                assert set(right) <= VERDICTS[kind]


def test_likert_plan_asks_for_forty_outputs() -> None:
    plan = PLANS["likert"]
    assert plan["items"]["sample"] * len(plan["systems"]) == 40
    assert plan["overlap"] == 2
    assert [aspect["name"] for aspect in plan["aspects"]] == ["naturalness", "relevance"]
    assert all(len(aspect["labels"]) == 5 for aspect in plan["aspects"])
