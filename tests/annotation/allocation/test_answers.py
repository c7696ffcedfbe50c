from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation.answers import (
    AspectForm,
    Form,
    check_answer,
    check_expected,
    is_expected,
    turn,
    turn_expected,
)

LIKERT = Form(
    "likert",
    (
        AspectForm("natural", "How natural?", 1, 6, 1, {"1": "awkward", "6": "native"}),
        AspectForm("sure", "How sure?", 0, 100, None),
    ),
)
PAIR = Form("pairwise", (AspectForm("better", "Which is better?", step=None),))
TURING = Form("turing", (AspectForm("human", "Which did a person write?", step=None),))


def fields(form, answer):
    return [field for field, _ in check_answer(form, answer)[1]]


def test_valid_answers_are_normalised():
    assert check_answer(LIKERT, {"natural": 6.0, "sure": "12.5"}) == ({"natural": 6, "sure": 12.5}, [])


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ({}, ["answer.natural", "answer.sure"]),
        ({"natural": 7, "sure": 1}, ["answer.natural"]),
        ({"natural": 2.5, "sure": 1}, ["answer.natural"]),
        ({"natural": True, "sure": 1}, ["answer.natural"]),
        ({"natural": 2, "sure": math.nan}, ["answer.sure"]),
        ({"natural": 2, "sure": [1]}, ["answer.sure"]),
        ({"natural": "two", "sure": 1}, ["answer.natural"]),
        ({"natural": 10**400, "sure": 1}, ["answer.natural"]),
        ({"natural": 2, "sure": 1, "other": 3}, ["answer.other"]),
        ([1, 2], ["answer"]),
        (None, ["answer"]),
    ],
)
def test_errors_name_their_field(answer, wrong):
    assert fields(LIKERT, answer) == wrong


def test_verdicts_depend_on_kind():
    assert fields(PAIR, {"better": "both_bad"}) == []
    assert fields(PAIR, {"better": "cannot_decide"}) == ["answer.better"]
    assert fields(TURING, {"human": "cannot_decide"}) == []
    assert fields(TURING, {"human": "tie"}) == ["answer.human"]


@given(st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.floats() | st.text(max_size=5), max_size=4))
def test_no_answer_crashes_the_check(answer):
    for form in (LIKERT, PAIR, TURING):
        clean, problems = check_answer(form, answer)
        assert problems or set(clean) == {aspect.name for aspect in form.aspects}


@given(st.dictionaries(st.text(max_size=3), st.sampled_from(["a", "b", "tie", "both_bad", 3]), max_size=4))
def test_swapping_twice_changes_nothing(answer):
    assert turn(turn(answer, True), True) == answer
    assert turn(answer, False) == answer


def test_swapping_exchanges_only_the_sides():
    assert turn({"x": "a", "y": "b", "z": "tie", "n": 2}, True) == {"x": "b", "y": "a", "z": "tie", "n": 2}


def test_expected_answers():
    assert is_expected("likert", {"natural": [1, 2]}, {"natural": 2, "sure": 0})
    assert not is_expected("likert", {"natural": [1, 2]}, {"natural": 3, "sure": 0})
    assert is_expected("likert", {"natural": 4}, {"natural": 4})
    assert is_expected("pairwise", {"better": ["a", "tie"]}, {"better": "tie"})
    assert not is_expected("pairwise", {"better": "a"}, {"better": "b"})
    assert not is_expected("pairwise", {"better": "a"}, {})
    # `check_expected` takes numbers as texts, as `check_answer` does
    assert check_expected(LIKERT, {"natural": ["9", "10"], "sure": "5"}, "e")[0][0] == "e.natural"
    assert check_expected(LIKERT, {"natural": ["2", 4], "sure": "5"}, "e") == []
    assert is_expected("likert", {"natural": ["2", 4], "sure": "5"}, {"natural": 3, "sure": 5})
    assert not is_expected("likert", {"sure": "10"}, {"sure": 9})
    assert turn_expected({"better": ["a", "tie"], "x": "b"}, True) == {"better": ["b", "tie"], "x": "a"}


def test_invalid_expectations_are_reported():
    assert check_expected(LIKERT, {"natural": [1, 2]}, "practice[0].expected") == []
    assert check_expected(LIKERT, {}, "e")[0][0] == "e"
    assert check_expected(LIKERT, {"natural": 9}, "e")[0][0] == "e.natural"
    assert check_expected(LIKERT, {"natural": [1, 2, 3]}, "e")[0][0] == "e.natural"
    assert check_expected(PAIR, {"better": "left"}, "e")[0][0] == "e.better"
    assert check_expected(PAIR, {"unknown": "a"}, "e")[0][0] == "e.unknown"


def test_form_sent_to_the_browser():
    shown = LIKERT.as_dict({"allow_note": True})
    points = shown["aspects"][0]["points"]
    assert [(row["value"], row["label"], row["key"]) for row in points] == [
        (1, "awkward", "1"), (2, "", "2"), (3, "", "3"), (4, "", "4"), (5, "", "5"), (6, "native", "6"),
    ]  # fmt: skip
    assert shown["aspects"][1]["points"] == []  # continuous
    assert [row["value"] for row in PAIR.as_dict({})["verdicts"]] == ["a", "b", "tie", "both_bad"]
    assert [row["value"] for row in TURING.as_dict({})["verdicts"]] == ["a", "b", "cannot_decide"]


def test_keyboard_keys_of_scales_without_digits():
    half = AspectForm("x", "?", -1, 1, 0.5).as_dict("likert")["points"]
    assert [(row["value"], row["key"]) for row in half] == [(-1, "1"), (-0.5, "2"), (0, "3"), (0.5, "4"), (1, "5")]
    ten = AspectForm("x", "?", 1, 10, 1).as_dict("likert")["points"]
    assert [row["key"] for row in ten][-2:] == ["9", "0"]
    zero = AspectForm("x", "?", 0, 4, 1).as_dict("likert")["points"]
    assert [row["key"] for row in zero] == ["0", "1", "2", "3", "4"]
