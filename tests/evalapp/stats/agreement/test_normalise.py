"""Ratings on a common scale, and means per output."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.agreement.normalise import aggregate_ratings, normalise_ratings


def test_raw_is_unchanged_and_missing_stays_missing():
    found = normalise_ratings([1, None, 3], [0, 0, 0], [0, 0, 0])
    assert found[[0, 2]].tolist() == [1, 3]
    assert np.isnan(found[1])


def test_ranks_within_item_rater_and_aspect_worked_by_hand():
    value = [10, 20, 20, 111111, 5, 7, math.nan, 3]
    item = ["i", "i", "i", "i", "i", "j", "j", "i"]
    rater = ["r", "r", "r", "r", "s", "r", "r", "r"]
    aspect = ["n"] * 7 + ["q"]
    found = normalise_ratings(value, item, rater, aspect, method="rank")
    # Four outputs of item i by rater r: midranks 1, 2.5, 2.5, 4, minus a half, over 4. Alone: 1/2.
    assert found[:4].tolist() == [0.125, 0.5, 0.5, 0.875]
    assert found[[4, 5, 7]].tolist() == [0.5, 0.5, 0.5]
    assert np.isnan(found[6])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=40))
def test_ranks_do_not_change_under_monotone_transforms_or_order(rows):
    value, item, rater = (np.array(column) for column in zip(*rows, strict=True))
    found = normalise_ratings(value, item, rater, method="rank")
    assert np.array_equal(normalise_ratings(np.exp(value), item, rater, method="rank"), found)
    assert ((found > 0) & (found < 1)).all()
    order = np.random.default_rng(0).permutation(len(value))
    assert np.array_equal(normalise_ratings(value[order], item[order], rater[order], method="rank"), found[order])


def test_plain_z_worked_by_hand():
    # Rater r: 1, 3, 5, mean 3, sample SD 2; s: 4, 6, mean 5, sample SD sqrt(2).
    found = normalise_ratings([1, 4, 3, 6, 5], [0, 0, 1, 1, 2], ["r", "s", "r", "s", "r"], method="z")
    np.testing.assert_allclose(found, [-1, -math.sqrt(0.5), 0, math.sqrt(0.5), 1], atol=1e-12)


def test_plain_z_equals_pandas_as_in_wmt_and_webnlg():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    frame = pandas.DataFrame(
        {"value": rng.integers(0, 101, 300), "rater": rng.integers(0, 12, 300), "aspect": rng.integers(0, 2, 300)}
    )
    by_rater = frame.groupby(["aspect", "rater"]).value
    expected = (frame.value - by_rater.transform("mean")) / by_rater.transform("std")  # pandas' std has divisor n - 1
    found = normalise_ratings(frame.value, np.arange(300), frame.rater, frame.aspect, method="z")
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_plain_z_is_undefined_for_a_rater_with_one_rating_or_equal_ratings_only():
    # 0.1 three times: the sum of squares about its mean is not 0 in floating point.
    found = normalise_ratings([0.1, 0.1, 0.1, 7, 1, 2], range(6), ["r", "r", "r", "s", "t", "t"], method="z")
    assert np.isnan(found[:4]).all()
    np.testing.assert_allclose(found[4:], [-math.sqrt(0.5), math.sqrt(0.5)])
    # Aspects are separate: a single rating per aspect is not enough.
    assert np.isnan(normalise_ratings([1, 2], [0, 0], ["r", "r"], [0, 1], method="z")).all()
    assert normalise_ratings([], [], [], method="z").size == 0


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=2, max_size=40),
    st.sampled_from([0.5, 2.0, 10.0]),
    st.integers(-5, 5),
)
def test_plain_z_has_mean_0_and_sd_1_for_every_rater_on_any_scale(rows, scale, shift):
    value, rater = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    item = np.arange(len(value))
    found = normalise_ratings(value, item, rater, method="z")
    np.testing.assert_allclose(normalise_ratings(scale * value + shift, item, rater, method="z"), found, atol=1e-9)
    for one in np.unique(rater):
        given, mine = value[rater == one], found[rater == one]
        if len(set(given)) < 2:
            assert np.isnan(mine).all()
        else:
            assert (mine.mean(), mine.std(ddof=1)) == pytest.approx((0, 1), abs=1e-9)


def test_shrunken_z_worked_by_hand():
    # Rater r: 1, 3 (mean 2, SS 2); s: 4, 6 (mean 5, SS 2). m = 3.5, W = 4 / 2 = 2, MSB = 2 (1.5^2) 2 / 1 = 9,
    # n_0 = 4 - 8/4 = 2, T = 3.5, B = 3.5 / 4.5 = 7/9; m_r = 3.5 - 7/6, m_s = 3.5 + 7/6; s^2 = (20 + 2) / 11 = 2.
    found = normalise_ratings([1, 3, 4, 6], [0, 1, 0, 1], ["r", "r", "s", "s"], method="z-shrunk")
    means = np.array([3.5 - 7 / 6] * 2 + [3.5 + 7 / 6] * 2)
    np.testing.assert_allclose(found, (np.array([1, 3, 4, 6]) - means) / math.sqrt(2), atol=1e-12)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=2, max_size=40),
    st.sampled_from([0.5, 2.0, 10.0]),
    st.integers(-5, 5),
)
def test_shrunken_z_does_not_depend_on_the_scale(rows, scale, shift):
    value, rater = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    item = np.arange(len(value))
    found = normalise_ratings(value, item, rater, method="z-shrunk")
    again = normalise_ratings(scale * value + shift, item, rater, method="z-shrunk")
    np.testing.assert_allclose(found, again, atol=1e-6)
    assert np.isfinite(found).all()


def test_shrunken_z_removes_rater_bias_given_enough_ratings():
    rng = np.random.default_rng(0)
    item = np.tile(np.arange(200), 2)
    rater = np.repeat([0, 1], 200)
    quality = rng.normal(size=200)
    value = np.concatenate([3 + quality, 10 + 4 * quality]) + rng.normal(scale=0.1, size=400)
    found = normalise_ratings(value, item, rater, method="z-shrunk")
    # Raw, the raters differ by 7 in mean and by a factor of 4 in spread.
    assert abs(found[:200].mean() - found[200:].mean()) < 0.02
    assert found[200:].std() / found[:200].std() == pytest.approx(1.0, abs=0.2)


def test_shrunken_z_of_one_rater_of_equal_ratings_and_of_one_rating():
    one_rater = normalise_ratings([1, 3], [0, 1], [0, 0], method="z-shrunk")
    np.testing.assert_allclose(one_rater, [-1 / math.sqrt(2), 1 / math.sqrt(2)])
    assert normalise_ratings([4, 4, 4], [0, 1, 2], [0, 0, 1], method="z-shrunk").tolist() == [0, 0, 0]
    assert normalise_ratings([4], [0], [0], method="z-shrunk").tolist() == [0]
    assert normalise_ratings([], [], [], method="z-shrunk").size == 0
    assert normalise_ratings([], [], [], method="rank").size == 0


def test_unknown_method_is_refused():
    with pytest.raises(ValueError, match="raw, z, z-shrunk, rank"):
        normalise_ratings([1], [0], [0], method="log")


def test_means_per_output():
    found = aggregate_ratings([1, 3, 5, math.nan, math.nan], ["b", "b", "a", "a", "c"], ["s", "s", "t", "t", "t"])
    assert found.item.tolist() == ["a", "b"]
    assert found.system.tolist() == ["t", "s"]
    assert found.mean.tolist() == [5, 2]
    assert found.n_ratings.tolist() == [1, 2]
    assert len(found) == 2


def test_equal_means_tie_in_any_order_of_ratings():
    thirds = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1]
    assert sum(thirds[:3]) != sum(thirds[3:])
    means = aggregate_ratings(thirds, [0, 0, 0, 1, 1, 1], [0] * 6).mean
    assert means[0] == means[1]
