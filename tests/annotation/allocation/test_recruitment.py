"""Settings of links for hired participants, answers to questions, and rules; expected values by hand."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import pytest

from annotation.allocation.recruitment import (
    Outcome,
    Work,
    agrees_with_others,
    list_failed_rules,
    read_participant_id,
    read_question_answers,
    read_recruitment,
    suggest_pay,
)


def read(**raw: Any) -> Any:
    plan, problems = read_recruitment({"places": 10, **raw})
    assert problems == []
    return plan


def test_choices_are_compared_without_spaces_around_them() -> None:
    """Answers come without them, so such a choice could never be chosen."""
    question = {"name": "first", "question": "English?", "kind": "choice", "choices": [" yes ", "no\t"]}
    plan = read(questions=[question])
    assert read_question_answers(plan.questions, {"first": "yes"}) == ({"first": "yes"}, [])
    _plan, problems = read_recruitment({"places": 1, "questions": [{**question, "choices": ["yes", " yes"]}]})
    assert [field for field, _message in problems] == ["questions[0].choices"]


def test_settings_survive_being_stored() -> None:
    raw = {
        "label": "A", "platform": "prolific", "consent": "Yes?", "personal_codes": True,
        "questions": [{"name": "age", "question": "Age?", "kind": "number", "low": 18}],
        "outcomes": {"full": {"code": "X", "address": "https://x.org/?a={PROLIFIC_PID}"}}, "pass_mark": 0.5,
    }  # fmt: skip
    plan = read(**raw)
    assert (plan.id_parameter, plan.meta_parameters) == ("PROLIFIC_PID", ("STUDY_ID", "SESSION_ID"))
    assert asdict(read(**plan.as_dict())) == asdict(plan)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"places": 0}, "places"),
        ({"places": None}, "places"),
        ({"id_parameter": "a b"}, "id_parameter"),
        ({"meta_parameters": ["participant"]}, "meta_parameters"),
        ({"meta_parameters": "A"}, "meta_parameters"),
        ({"platform": "other"}, "platform"),
        ({"meta_parameters": ["code"], "id_parameter": "pid"}, "meta_parameters"),  # a column of the file for payment
        ({"platform": ["prolific"]}, "platform"),
        ({"pass_mark": 75}, "pass_mark"),
        ({"only_new": "yes"}, "only_new"),
        ({"replace_failed": True, "pay_failed": 1}, "replace_failed"),
        ({"questions": [{"question": "?", "name": "Q"}]}, "questions[0].name"),
        ({"questions": [{"question": "?", "name": "q", "kind": "date"}]}, "questions[0].kind"),
        ({"questions": [{"question": "?", "name": "q", "kind": "choice", "choices": ["a"]}]}, "questions[0].choices"),
        ({"questions": [{"question": "?", "name": "q", "kind": "number", "low": 2, "high": 1}]}, "questions[0].high"),
        ({"questions": [{"question": "?", "name": "q", "kind": "number", "low": math.nan}]}, "questions[0].low"),
        ({"questions": [{"question": "?", "name": "q", "kind": "number", "high": math.inf}]}, "questions[0].high"),
        ({"questions": [{"question": "?" * 301, "name": "q"}]}, "questions[0].question"),
        ({"questions": [{"question": "?", "name": "q"}] * 2}, "questions"),
        ({"outcomes": {"won": {}}}, "outcomes.won"),
        ({"outcomes": {"full": {"address": "javascript:alert(1)"}}}, "outcomes.full.address"),
        ({"outcomes": {"full": {"address": "https://x.org/{who}"}}}, "outcomes.full.address"),
        ({"outcomes": {"full": {"address": "https://{participant}/"}}}, "outcomes.full.address"),
        ({"outcomes": {"full": {"code": "A"}, "passed": {"code": "A"}}}, "outcomes"),
        ({"outcomes": {"passed": {"code": "A"}}, "personal_codes": True}, "outcomes.passed.code"),
        ({"wages": 1}, "wages"),
    ],
)
def test_faulty_settings_name_their_field(raw: dict[str, Any], field: str) -> None:
    plan, problems = read_recruitment({"places": 10, **raw})
    assert plan is None
    assert [where for where, _ in problems] == [field]


def test_values_in_an_address_are_encoded() -> None:
    outcome = Outcome(address="https://x.org/?a={participant}&b={code}&c={S}")
    assert outcome.make_address({"participant": "a b&c", "code": "é"}) == "https://x.org/?a=a%20b%26c&b=%C3%A9&c="


def test_rules_need_data() -> None:
    plan = read(min_controls=0.7, min_seconds=3, min_agreement=0.5)
    assert list_failed_rules(plan, Work()) == []
    bad = Work(controls=10, controls_passed=6, median_seconds=2.9, shared=5, agreed=2)
    assert list_failed_rules(plan, bad) == ["controls", "speed", "agreement"]
    good = Work(controls=10, controls_passed=7, median_seconds=3, shared=4, agreed=0)
    assert list_failed_rules(plan, good) == [], "limits count as reached; four shared answers are too few"


def test_pay_and_bonus() -> None:
    plan = read(pay=2, pay_screened=0.3, bonus=1, bonus_controls=0.9)
    good, bad = Work(controls=10, controls_passed=9), Work(controls=10, controls_passed=8)
    assert suggest_pay(plan, "passed", good) == (2, 1)
    assert suggest_pay(plan, "passed", bad) == (2, 0)
    assert suggest_pay(plan, "failed", good) == (0, 0)
    assert suggest_pay(plan, "screened", good) == (0.3, 0)
    assert suggest_pay(plan, "left", good) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "value", "others", "agrees"),
    [
        ("likert", 4, [], None),
        ("likert", 4, [5], True),  # at most 5 / 4 from the median
        ("likert", 4, [6], False),
        ("likert", 3, [1, 6], True),  # median 3.5
        ("pairwise", "a", ["a", "b", "a"], True),
        ("pairwise", "b", ["a", "b", "a"], False),
        ("pairwise", "b", ["a", "b"], True),  # both are most frequent
        ("pairwise", "tie", ["a", "b"], False),
    ],
)
def test_agreement_with_others(kind: str, value: Any, others: list[Any], agrees: bool | None) -> None:
    assert agrees_with_others(kind, value, others, 5) is agrees


@pytest.mark.parametrize("text", ["", " ", "{ID}", "{{%PROLIFIC_PID%}}", "a\nb", "x" * 101])
def test_ids_that_name_nobody(text: str) -> None:
    assert read_participant_id(text)[1]


def test_ids_are_kept_as_they_are() -> None:
    assert read_participant_id(" A1b-é=+ ") == ("A1b-é=+", "")
