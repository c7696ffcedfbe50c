"""The intraclass correlation: Shrout and Fleiss' example, comparison with pingouin, missing ratings, undefined
cases."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.agreement.icc import BEYOND_POLE, ICC_FORMS, icc, iccs, step_up
from evalapp.stats.agreement.icc_reml import reml_iccs
from evalapp.stats.agreement.rating_columns import code_ratings
from evalapp.stats.resampling.bootstrap import Bootstrap, ClusterDraws, percentile_interval

# Shrout and Fleiss (1979), table 2: six targets, four judges; table 4 prints .17 .29 .71 and .44 .62 .91.
TARGETS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
PRINTED = {"1": 0.17, "A,1": 0.29, "C,1": 0.71, "1,k": 0.44, "A,k": 0.62, "C,k": 0.91}


def columns(data):
    unit, rater = (grid.ravel() for grid in np.indices(data.shape))
    return data.ravel().astype(float), unit, rater


@pytest.mark.parametrize("form", ICC_FORMS)
def test_published_example(form):
    assert icc(*columns(TARGETS), form=form, bootstrap=Bootstrap(resamples=0)).value == pytest.approx(
        PRINTED[form], abs=0.005
    )


def test_reliability_of_a_mean_follows_from_that_of_one_rating():
    single, mean = (icc(*columns(TARGETS), form=form, bootstrap=Bootstrap(resamples=0)).value for form in ("1", "1,k"))
    assert step_up(single, 4) == pytest.approx(mean)
    assert step_up(0.5, 2) == pytest.approx(2 / 3)  # Spearman-Brown: 2 x .5 / 1.5
    assert (step_up(0.5, 1), step_up(-0.2, 5)) == (0.5, 0.0)


@pytest.mark.parametrize("shape", [(8, 4), (25, 2)])
def test_values_and_exact_intervals_equal_pingouin(shape):
    import pingouin  # imports all of matplotlib and statsmodels

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
    found = icc(value, unit, rater, form=form, bootstrap=Bootstrap(resamples=30))
    order = rng.permutation(len(value))
    other = icc(100 - 3 * value[order], unit[order], rater[order] + 10, form=form, bootstrap=Bootstrap(resamples=30))
    # nan where the estimate is on the boundary: both have no interval.
    expected = pytest.approx((found.value, found.low, found.high), abs=1e-8, nan_ok=True)
    assert (other.value, other.low, other.high) == expected


def by_mean_squares(data, form):
    """McGraw and Wong's formulas (1996, table 4) for a complete table."""
    n, k = data.shape
    rows, columns_ = k * data.mean(axis=1).var(ddof=1), n * data.mean(axis=0).var(ddof=1)
    rest = data - data.mean(axis=1, keepdims=True) - data.mean(axis=0) + data.mean()
    error, within = (rest**2).sum() / ((n - 1) * (k - 1)), data.var(axis=1, ddof=1).mean()
    return {
        "1": (rows - within) / (rows + (k - 1) * within),
        "1,k": (rows - within) / rows,
        "A,1": (rows - error) / (rows + (k - 1) * error + k * (columns_ - error) / n),
        "A,k": (rows - error) / (rows + (columns_ - error) / n),
        "C,1": (rows - error) / (rows + (k - 1) * error),
        "C,k": (rows - error) / rows,
    }[form]


@pytest.mark.parametrize("form", ICC_FORMS)
def test_bootstrap_equals_a_loop_over_copied_units(form):
    counts = ClusterDraws(6, 3).take(40).astype(int).T
    # No end is below -1, so lower resamples count as -1.
    values = [max(by_mean_squares(np.repeat(TARGETS, row, axis=0), form), -1.0) for row in counts]
    found = icc(*columns(TARGETS), form=form, bootstrap=Bootstrap(resamples=40, seed=3))
    assert (found.low, found.high) == pytest.approx(percentile_interval(np.array(values)))


def test_variances_are_recovered_with_missing_ratings():
    """Units 1, raters .25, residual .5, half of the cells missing: A,1 = 1/1.75 = .571, C,1 = 1/1.5 = .667."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(3000, 1)) + 0.5 * np.sqrt(1.0) * rng.normal(size=(1, 60))
    data = data + np.sqrt(0.5) * rng.normal(size=data.shape)
    value, unit, rater = columns(data)
    kept = rng.random(len(value)) < 0.06
    shown = value[kept], unit[kept], rater[kept]
    r = float(np.var(data.mean(axis=0), ddof=1))
    assert icc(*shown, form="A,1", bootstrap=Bootstrap(resamples=0)).value == pytest.approx(1 / (1.5 + r), abs=0.03)
    assert icc(*shown, form="C,1", bootstrap=Bootstrap(resamples=0)).value == pytest.approx(2 / 3, abs=0.03)
    assert icc(*shown, form="1", bootstrap=Bootstrap(resamples=0)).value == pytest.approx(1 / (1.5 + r), abs=0.03)
    exact = icc(*shown, interval="exact")
    assert (exact.has_interval, "exact interval" in exact.note) == (False, True)


def incomplete(seed, n=14, raters=5, kept=0.6):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n, 1)) + rng.normal(size=(1, raters)) + 0.7 * rng.normal(size=(n, raters))
    value, unit, rater = columns(data)
    shown = rng.random(len(value)) < kept
    return value[shown], unit[shown], rater[shown]


def restricted(value, unit, rater):
    """Variances of units, raters and residual that maximise the restricted likelihood, computed from the full
    covariance matrix of the ratings and searched without derivatives."""
    from scipy.optimize import minimize

    ones = np.ones(len(value))
    same_unit, same_rater = unit[:, None] == unit, rater[:, None] == rater

    def deviance(logs):
        v_u, v_r, v_e = np.exp(logs)
        covariance = v_u * same_unit + v_r * same_rater + v_e * np.eye(len(value))
        inverse = np.linalg.inv(covariance)
        level = float(ones @ inverse @ value / (ones @ inverse @ ones))
        rest = value - level
        return np.linalg.slogdet(covariance)[1] + math.log(ones @ inverse @ ones) + rest @ inverse @ rest

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}
    return np.exp(minimize(deviance, np.zeros(3), method="Nelder-Mead", options=options).x)


def by_formula(u, r, e, k):
    return {"A,1": u / (u + r + e), "A,k": u / (u + (r + e) / k), "C,1": u / (u + e), "C,k": u / (u + e / k)}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_missing_ratings_are_fitted_by_restricted_likelihood(seed):
    """Compared with the likelihood computed here, and with statsmodels' mixed model."""
    value, unit, rater = incomplete(seed)
    used = np.isin(unit, np.flatnonzero(np.bincount(unit) >= 2))
    value, unit, rater = value[used], unit[used], rater[used]
    found = iccs(value, unit, rater, forms=("A,1", "A,k", "C,1", "C,k"), bootstrap=Bootstrap(resamples=0))
    sizes = np.bincount(unit)
    k = (sizes > 0).sum() / (1 / sizes[sizes > 0]).sum()
    expected = by_formula(*restricted(value, unit, rater), k)
    assert {form: one.value for form, one in found.items()} == pytest.approx(expected, abs=1e-5)
    assert all("REML" in one.note for one in found.values())

    import statsmodels.formula.api as smf

    frame = pd.DataFrame({"y": value, "u": unit, "r": rater, "g": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = {"u": "0 + C(u)", "r": "0 + C(r)"}
        model = smf.mixedlm("y ~ 1", frame, groups="g", re_formula="0", vc_formula=parts).fit(reml=True)
    variances = dict(zip(model.model.exog_vc.names, model.vcomp, strict=True))
    expected = by_formula(variances["u"], variances["r"], model.scale, k)
    assert {form: one.value for form, one in found.items()} == pytest.approx(expected, abs=2e-3)


def test_restricted_likelihood_of_a_complete_table_is_the_published_example():
    """Shrout and Fleiss' mean squares by hand: 11.24 between targets, 32.49 between judges, 1.02 residual; REML of a
    balanced table with positive variances equals the analysis of variance."""
    found = reml_iccs(
        code_ratings(*columns(TARGETS)), ("A,1", "C,1", "A,k", "C,k"), 4, intervals=False, seed=0, confidence=0.95
    )
    for form, one in found.items():
        assert one.value == pytest.approx(PRINTED[form], abs=0.005)
        assert one.value == pytest.approx(
            icc(*columns(TARGETS), form=form, bootstrap=Bootstrap(resamples=0)).value, abs=1e-6
        )


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 5)), min_size=4, max_size=24),
    reverse=st.sampled_from([(), (0,), (0, 1)]),
)
def test_incomplete_or_reversed_ratings_give_no_value_above_1(rows, reverse):
    """Consistency is also not below agreement when raters miss units, and no interval end is above 1. Some raters
    reverse the scale."""
    table = {(unit, rater): 6 - value if rater in reverse else value for unit, rater, value in rows}
    value = np.array(list(table.values()), dtype=float)
    unit, rater = (np.array([key[place] for key in table]) for place in (0, 1))
    found = iccs(value, unit, rater, bootstrap=Bootstrap(resamples=40))
    for one in found.values():
        assert one.is_defined or one.note
        for number in (one.value, one.low, one.high):
            assert math.isnan(number) or number <= 1 + 1e-9
    sizes = np.bincount(unit)
    used = sizes[unit] >= 2
    complete = used.sum() == len(set(unit[used])) * len(set(rater[used]))
    if not complete and found["C,1"].is_defined and found["A,1"].is_defined:
        assert found["C,1"].value >= found["A,1"].value - 1e-9
        assert found["C,k"].value >= found["A,k"].value - 1e-9
        assert found["A,1"].value >= 0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), raters=st.integers(2, 4), n=st.integers(2, 8))
def test_reversed_raters_of_complete_tables_give_no_reliability_above_1(seed, raters, n):
    rng = np.random.default_rng(seed)
    data = rng.integers(1, 6, size=(n, 1)) + rng.integers(0, 2, size=(n, raters))
    data[:, 0] = 7 - data[:, 0]
    for interval in ("bootstrap", "exact"):
        for form, one in iccs(*columns(data), interval=interval, bootstrap=Bootstrap(resamples=60)).items():
            assert one.is_defined or one.note, form
            for number in (one.value, one.low, one.high):
                assert math.isnan(number) or -1 - 1e-9 <= number <= 1 + 1e-9, (form, interval, one)


def test_no_value_beyond_the_pole():
    """By hand: [[1, 2], [2, 1]] has mean squares of 0 between units, 0 between raters and 1 residual, so A,k = (0 - 1)
    / (0 + (0 - 1) / 2) = 2; A,1 = (0 - 1) / (0 + 1 + 2 (0 - 1) / 2) divides by 0."""
    found = iccs(*columns(np.array([[1, 2], [2, 1]])), bootstrap=Bootstrap(resamples=0))
    assert {form for form, one in found.items() if not one.is_defined} == {"1,k", "A,1", "A,k", "C,k"}
    assert found["A,k"].note == BEYOND_POLE
    # C,1 = (0 - 1) / (0 + 1) = -1, and 1: mean squares 0 and 1/2 within, (0 - 1/2) / (0 + 1/2) = -1.
    assert (found["1"].value, found["C,1"].value) == pytest.approx((-1, -1))
    # Eight units, one reversed rater: A,k was once far above 1.
    good = np.arange(1.0, 9.0)
    reversed_ = np.stack([good, 9 - good + 0.01 * good**2], axis=1)
    found = icc(*columns(reversed_), form="A,k")
    assert not found.is_defined
    assert "negative variance component" in found.note


def test_no_value_below_minus_one():
    """By hand: [[1, 5], [3, 3], [5, 1]] has mean squares of 0 between units, 0 between raters and 8 residual, so A,1 =
    (0 - 8) / (0 + 8 + 2 (0 - 8) / 3) = -3; C,1 = (0 - 8) / (0 + 8) = -1 is a possible correlation."""
    found = iccs(*columns(np.array([[1, 5], [3, 3], [5, 1]])), bootstrap=Bootstrap(resamples=0))
    assert found["A,1"].note == BEYOND_POLE
    assert found["C,1"].value == pytest.approx(-1)
    # Pure noise often gives values below 0, which both reference programs also show.
    noise = np.random.default_rng(3).normal(size=(40, 3))
    some = iccs(*columns(noise), bootstrap=Bootstrap(resamples=0))
    assert -0.2 < some["A,1"].value < 0
    # C,k = 1 - MSE / MSR is clipped at its lower end: some resamples have hardly any variance between units.
    few = icc(*columns(np.random.default_rng(6).normal(size=(6, 2))), form="C,k")
    assert not few.has_interval or few.low >= -1


@pytest.mark.parametrize("form", ["A,1", "C,1"])
def test_jackknife_intervals_cover_the_truth(form):
    """60 units, 12 raters, 3 ratings each, variances 1, .25 (as drawn) and .75, raters held fixed: at least 17 of 20
    data sets; over 200 data sets of four sizes, .91 to .97 were measured."""
    held = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        raters, unit = 0.5 * np.random.default_rng(99).normal(size=12), np.repeat(np.arange(60), 3)
        rater = np.concatenate([rng.choice(12, 3, replace=False) for _ in range(60)])
        value = rng.normal(size=60)[unit] + raters[rater] + math.sqrt(0.75) * rng.normal(size=180)
        spread = np.var(raters, ddof=1) if form == "A,1" else 0.0
        found = icc(value, unit, rater, form=form)
        held += found.low <= 1 / (1.75 + spread) <= found.high
        assert 0 <= found.low < found.value < found.high < 1
    assert held >= 17


def test_undefined_with_a_reason():
    assert icc([], [], []).note == "no unit was rated twice"
    assert icc([1, 2], [0, 1], [0, 0]).note == "no unit was rated twice"
    assert icc([1, 2], [0, 0], [0, 1]).note == "one unit only: units cannot differ"
    assert icc([2, 2, 2, 2], [0, 0, 1, 1], [0, 1, 0, 1]).note == "all ratings are equal"
    nested = [1.0, 2.0, 3.0, 5.0], [0, 0, 1, 1], [0, 1, 2, 3]
    assert "no rater rated two units" in icc(*nested, form="C,1").note
    assert icc(*nested, form="A,1", bootstrap=Bootstrap(resamples=0)).value == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="form"):
        icc([1, 2], [0, 0], [0, 1], form="2,1")
    with pytest.raises(ValueError, match="interval"):
        icc([1, 2], [0, 0], [0, 1], interval="jackknife")
