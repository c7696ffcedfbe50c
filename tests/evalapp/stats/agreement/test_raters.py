"""Reports on raters: each figure by hand, each reason on a rater constructed for it, none on ordinary raters."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.agreement.raters import rater_reports


def crowd(seed=0, outputs=120, raters=8):
    """Ordinary raters of outputs: truth plus noise on a scale of 1 to 5."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(3, 1, outputs)
    data = np.clip(np.rint(truth[:, None] + rng.normal(0, 0.7, (outputs, raters))), 1, 5)
    output, rater = (grid.ravel() for grid in np.indices(data.shape))
    return data, output, rater


def test_figures_by_hand():
    value = [1, 2, 3, 3, 5, 4, 2]
    output = ["x", "y", "z", "x", "y", "z", "w"]
    rater = ["a", "a", "a", "b", "b", "b", "b"]
    a, b = rater_reports(value, output, rater, seconds=[2, 4, math.nan, 9, 9, 9, 1])
    # a against b on x, y, z: -2, -3, -1.
    assert (a.rater, a.n, a.bias.value, a.bias.n) == ("a", 3, -2, 3)
    half = stats.t.ppf(0.975, 2) * 1 / math.sqrt(3)
    assert (a.bias.low, a.bias.high) == pytest.approx((-2 - half, -2 + half))
    assert a.agreement.value == pytest.approx(np.corrcoef([1, 2, 3], [3, 5, 4])[0, 1])
    assert a.spread.value == 1
    assert (a.seconds.value, a.seconds.n) == (3, 2)
    assert (b.n, b.bias.value, b.bias.n) == (4, 2, 3)
    assert (b.most_given, b.most_given_share) == (2, 0.25)
    assert a.drift.note == "the order of the judgements is not known"
    assert a.control_failures.note == "no control item was judged"
    assert a.self_consistency.note == "no output was shown twice"


def test_repeats_controls_and_drift_by_hand():
    value = [1, 2, 3, 4, 1, 3, 2, 2, 2, 2]
    output = ["p", "q", "r", "s", "p2", "q", "p", "q", "r", "s"]
    rater = ["a"] * 6 + ["b"] * 4
    repeat_of = [None, None, None, None, "p", "q", None, None, None, None]
    failed = [True, False, None, None, None, None, None, None, None, math.nan]
    at = [f"2026-01-0{day}" for day in (1, 2, 3, 4, 5, 6, 1, 2, 3, 4)]
    a, b = rater_reports(value, output, rater, repeat_of=repeat_of, control_failed=failed, at=at)
    assert a.n == 4
    assert (a.self_consistency.value, a.self_consistency.n) == (0.5, 2)
    assert a.repeat_distance.value == 0.5
    assert (a.control_failures.value, a.control_failures.n) == (0.5, 2)
    # Against b: -1, 0, then 1, 2.
    assert a.drift.value == 2
    assert a.drift.low < 2 < a.drift.high
    assert b.control_failures.note == "no control item was judged"
    assert b.agreement.note == "all ratings are equal where others rated too"
    assert a.agreement.note == "the others' ratings are all equal where others rated too"
    # Wilson's interval of 1 of 2, by SciPy.
    expected = stats.binomtest(1, 2).proportion_ci(method="wilson")
    assert (a.self_consistency.low, a.self_consistency.high) == pytest.approx((expected.low, expected.high))


def test_ordinary_raters_give_no_reason():
    for seed in range(5):
        data, output, rater = crowd(seed)
        reports = rater_reports(data.ravel(), output, rater, at=np.arange(data.size))
        assert [report.reasons for report in reports] == [()] * 8
        assert all(report.agreement.low < report.agreement.value < report.agreement.high for report in reports)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda column: np.clip(column + 1.5, 1, 7), "higher than others do"),
        (lambda column: np.where(np.arange(len(column)) < 115, 4, column), "Gave 4 in"),
        (lambda column: np.random.default_rng(3).permutation(column), "with the mean of the others"),
        (
            lambda column: column + np.where(np.arange(len(column)) < 60, 0, 1.5),
            "between the first and the second half",
        ),
        (lambda column: 10 * column, "those of all raters by"),
        (lambda column: 0.1 * column + 2.7, "only, the middle rater's"),
    ],
)
def test_each_reason_on_a_constructed_rater(change, words):
    data, output, rater = crowd()
    data[:, 3] = change(data[:, 3].copy())
    reports = rater_reports(data.ravel(), output, rater, at=output)
    assert any(words in reason for reason in reports[3].reasons), reports[3].reasons
    assert all(not any(words in reason for reason in report.reasons) for report in reports if report.rater != 3)


def test_speed_repeats_and_controls_as_reasons():
    data, output, rater = crowd(outputs=30)
    seconds = np.where(rater == 2, 1.0, 9.0)
    value = np.concatenate([data.ravel(), data[:10].ravel()])
    again = np.concatenate([np.full(data.size, None), output[:80]])
    value[data.size :][rater[:80] == 5] += 1
    failed = np.full(len(value), None)
    failed[np.flatnonzero(rater == 6)[:4]] = [True, True, False, True]
    failed[np.flatnonzero(rater == 7)[:4]] = [False, False, False, True]
    output, rater = np.concatenate([output, output[:80]]), np.concatenate([rater, rater[:80]])
    reports = rater_reports(
        value,
        output,
        rater,
        seconds=np.concatenate([seconds, np.full(80, 9.0)]),
        repeat_of=again,
        control_failed=failed,
    )
    assert any("Takes 1.0 s a judgement" in reason for reason in reports[2].reasons)
    assert any("0 of 10 outputs" in reason for reason in reports[5].reasons)
    assert reports[4].self_consistency.value == 1
    assert any("Failed 3 of 4 control items." in reason for reason in reports[6].reasons)
    assert reports[7].reasons == ()


def test_all_raters_too_fast_to_read_are_listed():
    """A median of 0.25 s, as from people who press one key repeatedly: no rater is much faster than the median."""
    data, output, rater = crowd(outputs=30)
    reports = rater_reports(data.ravel(), output, rater, seconds=np.where(rater == 7, 4.0, 0.2 + 0.1 * (output % 2)))
    for report in reports[:7]:
        assert report.reasons[0] == "Takes 0.25 s a judgement, too short to read a text and answer."
    assert reports[7].reasons == ()


def test_two_of_four_repeats_may_be_chance_among_forty_raters():
    # 154 of 160 repeats match the first answer; by SciPy P(2 or fewer of 4) = .008, not below .05 / 40; for 20 raters
    # it is.
    assert stats.binom.cdf(2, 4, 154 / 160) == pytest.approx(0.0081, abs=1e-4)
    rater = np.repeat(np.arange(40), 8)
    output = np.tile([0, 1, 2, 3, 10, 11, 12, 13], 40)
    again = np.tile([None, None, None, None, 0, 1, 2, 3], 40)
    value = np.tile([1.0, 2, 3, 4, 1, 2, 3, 4], 40)
    value[[4, 5]] += 1
    value[[12, 20, 28, 36]] += 1
    found = rater_reports(value, output, rater, repeat_of=again)
    assert found[0].self_consistency.value == 0.5
    assert [report.reasons for report in found] == [()] * 40
    few = rater_reports(value[:40], output[:40], rater[:40], repeat_of=again[:40])
    assert not any("shown twice" in reason for report in few for reason in report.reasons)
    value[[4, 5, 6, 7]] = 9.0
    (reason,) = [r for r in rater_reports(value, output, rater, repeat_of=again)[0].reasons if "shown twice" in r]
    assert "same answer to 0 of 4 outputs" in reason


def test_order_of_rows_does_not_matter_and_json():
    data, output, rater = crowd(outputs=20)
    at = np.array(["2026-02-01T00:00"] * data.size, dtype="datetime64[m]") + np.arange(data.size)
    order = np.random.default_rng(1).permutation(data.size)
    plain = rater_reports(data.ravel(), output, rater, at=at)
    other = rater_reports(data.ravel()[order], output[order], rater[order], at=at[order])
    for one, two in zip(plain, other, strict=True):
        assert json.dumps(one.as_dict(), allow_nan=False)
        assert one.rater == two.rater
        assert one.bias.value == pytest.approx(two.bias.value)
        assert one.drift.value == pytest.approx(two.drift.value)
        assert one.reasons == two.reasons


def test_empty_one_rater_and_all_equal():
    assert rater_reports([], [], []) == []
    (alone,) = rater_reports([3.0, math.nan], ["x", "y"], ["a", "a"])
    assert alone.n == 1
    assert alone.bias.note == "no output is shared with another rater"
    assert alone.spread.note == "fewer than 2 ratings"
    assert alone.reasons == ()
    equal = rater_reports([3.0] * 60, list(range(30)) * 2, ["a"] * 30 + ["b"] * 30)
    assert [report.reasons for report in equal] == [(), ()]
    (nothing, _) = rater_reports([math.nan, 1], ["x", "x"], ["a", "b"])
    assert nothing.n == 0
    json.dumps(nothing.as_dict(), allow_nan=False)
