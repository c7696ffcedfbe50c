"""The intraclass correlation: Shrout and Fleiss' example, pingouin side by side, missing ratings, undefined cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats import ClusterDraws, icc, percentile_interval
from evalapp.stats.icc import ICC_FORMS

# Shrout and Fleiss (1979), table 2: six targets, four judges; table 4 prints .17 .29 .71 and .44 .62 .91.
TARGETS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
PRINTED = {"1": 0.17, "A,1": 0.29, "C,1": 0.71, "1,k": 0.44, "A,k": 0.62, "C,k": 0.91}


def columns(data):
    unit, rater = (grid.ravel() for grid in np.indices(data.shape))
    return data.ravel().astype(float), unit, rater


@pytest.mark.parametrize("form", ICC_FORMS)
def test_published_example(form):
    assert icc(*columns(TARGETS), form=form, resamples=0).value == pytest.approx(PRINTED[form], abs=0.005)


@pytest.mark.parametrize("shape", [(8, 4), (25, 2)])
def test_values_and_exact_intervals_are_those_of_pingouin(shape):
    import pingouin  # loads all of matplotlib and statsmodels

    rng = np.random.default_rng(4)
    data = rng.normal(size=(shape[0], 1)) + 0.5 * rng.normal(size=(1, shape[1])) + rng.normal(size=shape)
    value, unit, rater = columns(data)
    frame = pd.DataFrame({"value": value, "unit": unit, "rater": rater})
    with Digits():
        expected = pingouin.intraclass_corr(frame, "unit", "rater", "value").set_index("Type")
    for form in ICC_FORMS:
        row = expected.loc[f"ICC({form if ',' in form else '1,1'})"]
        found = icc(value, unit, rater, form=form, interval="exact")
        assert found.value == pytest.approx(row["ICC"], abs=1e-9)
        # pingouin rounds interval ends to two places.
        assert (found.low, found.high) == pytest.approx(tuple(row["CI95"]), abs=0.0051)


class Digits:
    """pingouin's tables without the rounding of their cells."""

    def __enter__(self):
        from pingouin import options

        self.options, self.kept = options, dict(options)
        options["round"] = None

    def __exit__(self, *_):
        self.options.update(self.kept)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), form=st.sampled_from(ICC_FORMS))
def test_order_names_and_units_of_measurement_do_not_matter(seed, form):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(9, 1)) + rng.normal(size=(9, 4))
    value, unit, rater = columns(data)
    kept = rng.random(36) < 0.8
    value, unit, rater = value[kept], unit[kept], rater[kept]
    found = icc(value, unit, rater, form=form, resamples=30)
    order = rng.permutation(len(value))
    other = icc(100 - 3 * value[order], unit[order], rater[order] + 10, form=form, resamples=30)
    assert (other.value, other.low, other.high) == pytest.approx((found.value, found.low, found.high), abs=1e-8)


@pytest.mark.parametrize("form", ICC_FORMS)
def test_bootstrap_equals_a_loop_over_written_out_units(form):
    counts = ClusterDraws(6, 3).take(40).astype(int).T
    values = [icc(*columns(np.repeat(TARGETS, row, axis=0)), form=form, resamples=0).value for row in counts]
    found = icc(*columns(TARGETS), form=form, resamples=40, seed=3)
    assert (found.low, found.high) == pytest.approx(percentile_interval(np.array(values)))


def test_missing_ratings_find_the_variances_again():
    """Units 1, raters .25, residual .5, half of the cells missing: A,1 = 1/1.75 = .571, C,1 = 1/1.5 = .667."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(3000, 1)) + 0.5 * np.sqrt(1.0) * rng.normal(size=(1, 60))
    data = data + np.sqrt(0.5) * rng.normal(size=data.shape)
    value, unit, rater = columns(data)
    kept = rng.random(len(value)) < 0.06
    shown = value[kept], unit[kept], rater[kept]
    r = float(np.var(data.mean(axis=0), ddof=1))
    assert icc(*shown, form="A,1", resamples=0).value == pytest.approx(1 / (1.5 + r), abs=0.03)
    assert icc(*shown, form="C,1", resamples=0).value == pytest.approx(2 / 3, abs=0.03)
    assert icc(*shown, form="1", resamples=0).value == pytest.approx(1 / (1.5 + r), abs=0.03)
    assert "did not rate every unit" in icc(*shown, interval="exact").note


def test_undefined_with_its_reason():
    assert icc([], [], []).note == "no unit was rated twice"
    assert icc([1, 2], [0, 1], [0, 0]).note == "no unit was rated twice"
    assert icc([1, 2], [0, 0], [0, 1]).note == "one unit only: units cannot differ"
    assert icc([2, 2, 2, 2], [0, 0, 1, 1], [0, 1, 0, 1]).note == "all ratings are equal"
    nested = [1.0, 2.0, 3.0, 5.0], [0, 0, 1, 1], [0, 1, 2, 3]
    assert "no rater rated two units" in icc(*nested, form="C,1").note
    assert icc(*nested, form="A,1", resamples=0).value == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="form"):
        icc([1, 2], [0, 0], [0, 1], form="2,1")
    with pytest.raises(ValueError, match="interval"):
        icc([1, 2], [0, 0], [0, 1], interval="jackknife")
