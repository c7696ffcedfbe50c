"""Ratings and verdicts from answers, with values computed by hand."""

from __future__ import annotations

import math

import pytest

from scoring.ml.judges import (
    Answer,
    Reading,
    Rubric,
    read_rating,
    read_reward,
    read_verdict,
    settle_orders,
    settle_rewards,
)
from scoring.ml.judges.answers import NO_ANSWER, find_json, weigh_answers

FIVE = Rubric("Fluent?", 1, 5)
TEN = Rubric("Fluent?", 1, 10)


def make_answer(*tokens, text=""):
    """An answer whose tokens are (token, {alternative: probability})."""
    rows = tuple((token, {key: math.log(p) for key, p in top.items()}) for token, top in tokens)
    return Answer(text, "m", tokens=rows)


def test_the_expected_rating_weighs_the_labels_by_their_probability():
    answer = make_answer(("4", {"4": 0.6, "5": 0.2, " 3": 0.1, "Well": 0.1}))
    reading = read_rating(answer, FIVE, by_probability=True)
    # (0.6 * 4 + 0.2 * 5 + 0.1 * 3) / 0.9
    assert reading.value == pytest.approx(3.7 / 0.9)
    assert reading.share == pytest.approx(0.9)


def test_a_label_of_two_tokens_has_the_product_of_their_probabilities():
    answer = make_answer(("1", {"1": 0.8, "7": 0.2}), ("0", {"0": 0.75, "\n": 0.15, "<eos>": 0.1}))
    assert weigh_answers(answer, list(TEN.answers)) == pytest.approx(
        {**dict.fromkeys(TEN.answers, 0.0), "10": 0.6, "1": 0.8 * 0.25, "7": 0.2}
    )


def test_blanks_before_the_number_are_passed():
    answer = make_answer((" ", {" ": 0.5, "2": 0.5}), ("4", {"4": 1.0}))
    weights = weigh_answers(answer, list(FIVE.answers))
    assert (weights["4"], weights["2"]) == (0.5, 0.5)


def test_a_low_share_on_the_scale_is_undefined():
    reading = read_rating(make_answer(("I", {"I": 0.6, "3": 0.4})), FIVE, by_probability=True)
    assert reading.value is None
    assert reading.share == pytest.approx(0.4)
    assert "probability" in reading.reason


def test_refusals_and_missing_log_probabilities_have_their_reasons():
    refused = Answer("I cannot.", "m", refused=True)
    for by_probability in (True, False):
        assert read_rating(refused, FIVE, by_probability=by_probability).reason == "the model refused"
        assert read_verdict(refused, by_probability=by_probability).reason == "the model refused"
    assert "log-probabilities" in read_rating(Answer("3", "m"), FIVE, by_probability=True).reason


@pytest.mark.parametrize(
    ("text", "value", "repairable"),
    [
        ('{"rating": 3}', 3.0, False),
        ('```json\n{"rating": "4"}\n```', 4.0, False),
        ('{broken} then {"rating": 2}', 2.0, False),
        ('{"rating": 7}', None, True),
        ('{"rating": true}', None, True),
        ('{"rating": NaN}', None, True),
        ('{"score": 3}', None, True),
        ("3 of 5", None, True),
        ("{" * 50, None, True),
        ('{"rating": 1e999}', None, True),
        ('{"rating": [1]}', None, True),
    ],
)
def test_structured_answers(text, value, repairable):
    reading = read_rating(Answer(text, "m"), FIVE, by_probability=False)
    assert (reading.value, reading.repairable) == (value, repairable)


def test_json_is_found_in_linear_time():
    assert find_json("{" * 100_000) is None


def test_verdicts_by_probability():
    reading = read_verdict(make_answer(("A", {"A": 0.5, "B": 0.2, "C": 0.2})), by_probability=True)
    assert reading.verdict == "a"
    assert reading.value == pytest.approx(0.6 / 0.9)  # (0.5 + 0.2 / 2) / 0.9


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [("a", "b", "a"), ("b", "a", "b"), ("tie", "tie", "tie"), ("a", "a", "tie"), ("a", "tie", "tie")],
)
def test_orders_that_disagree_are_a_tie(first, second, verdict):
    values = {"a": 1.0, "b": 0.0, "tie": 0.5}
    settled = settle_orders(Reading(values[first], first), Reading(values[second], second))
    assert settled.verdict == verdict
    assert settled.value == (values[first] + 1 - values[second]) / 2


def test_a_pair_without_one_answer_has_the_reason_of_it():
    settled = settle_orders(Reading(1.0, "a"), Reading(reason="the model refused"))
    assert (settled.value, settled.reason) == (None, "the model refused")


def test_an_answer_survives_its_storage():
    answer = make_answer(("4", {"4": 0.6, "5": 0.2}), text="4")
    again = Answer.from_json(answer.as_json(), "m")
    assert read_rating(again, FIVE, by_probability=True).value == pytest.approx(
        read_rating(answer, FIVE, by_probability=True).value, abs=1e-5
    )


def test_rewards_decide_pairs_by_the_model_of_their_training():
    """Bradley-Terry: P(a > b) = 1 / (1 + exp(b - a))."""
    one, two = read_reward(Answer("2.5", "m")), read_reward(Answer("1.5", "m"))
    settled = settle_rewards(one, two)
    assert settled.verdict == "a"
    assert settled.value == pytest.approx(1 / (1 + math.exp(-1)))
    assert settle_rewards(two, one).verdict == "b"
    assert settle_rewards(one, one) == Reading(value=0.5, verdict="tie")
    for text in ("nan", "inf", "good"):
        assert settle_rewards(one, read_reward(Answer(text, "m"))).reason == NO_ANSWER
