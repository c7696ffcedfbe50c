"""Variance components: balanced tables by mean squares, comparison with statsmodels, recovered truth, degenerate
input."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from evalapp.stats.agreement import mixed
from evalapp.stats.agreement.components import variance_components
from evalapp.stats.agreement.mixed import MixedModel


def table(shape=(20, 5, 6), sds=(0.6, 0.5, 0.4, 0.5, 0.7), keep=0.6, seed=1):
    """Ratings of items x systems x raters with known standard deviations of item, system, output, rater, residual."""
    rng = np.random.default_rng(seed)
    items, systems, raters = shape
    y = 3 + rng.normal(0, sds[0], (items, 1, 1)) + rng.normal(0, sds[1], (1, systems, 1))
    y = y + rng.normal(0, sds[2], (items, systems, 1)) + rng.normal(0, sds[3], (1, 1, raters))
    y = y + rng.normal(0, sds[4], shape)
    item, system, rater = (grid.ravel() for grid in np.indices(shape))
    kept = rng.random(y.size) < keep
    return y.ravel()[kept], item[kept], rater[kept], system[kept]


def test_balanced_two_way_table_by_mean_squares():
    rng = np.random.default_rng(0)
    data = rng.normal(0, 1, (12, 1)) + rng.normal(0, 0.8, (1, 5)) + rng.normal(0, 0.5, (12, 5))
    item, rater = (grid.ravel() for grid in np.indices(data.shape))
    rows = 5 * data.mean(axis=1).var(ddof=1)
    columns = 12 * data.mean(axis=0).var(ddof=1)
    rest = data - data.mean(axis=1, keepdims=True) - data.mean(axis=0) + data.mean()
    error = (rest**2).sum() / (11 * 4)
    found = variance_components(data.ravel(), item, rater)
    assert found.residual.value == pytest.approx(error, rel=1e-4)
    assert found.item.value == pytest.approx((rows - error) / 5, rel=1e-4)
    assert found.rater.value == pytest.approx((columns - error) / 12, rel=1e-4)
    assert found.mean == pytest.approx(data.mean())
    assert found.system.note == "no systems were given"
    # Reliability of the mean of 3 different raters.
    item_, noise = found.item.value, found.rater.value + found.residual.value
    assert found.reliability(3) == pytest.approx(item_ / (item_ + noise / 3))


def test_unbalanced_four_factors_equal_statsmodels():
    value, item, rater, system = table()
    found = variance_components(value, item, rater, system)
    frame = pd.DataFrame({"y": value, "i": item, "s": system, "r": rater, "o": item * 100 + system, "g": 1})
    parts = {"item": "i", "system": "s", "output": "o", "rater": "r"}
    formula = {name: f"0 + C({column})" for name, column in parts.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = smf.mixedlm("y ~ 1", frame, groups="g", re_formula="0", vc_formula=formula).fit(reml=True)
    for name, variance in zip(model.model.exog_vc.names, model.vcomp, strict=True):
        assert getattr(found, name).value == pytest.approx(variance, rel=2e-3)
    assert found.residual.value == pytest.approx(model.scale, rel=1e-3)
    assert found.mean == pytest.approx(model.fe_params["Intercept"], abs=1e-4)
    for part in ("item", "system", "output", "rater", "residual"):
        estimate = getattr(found, part)
        assert estimate.low < estimate.value < estimate.high
    assert sum(found.shares.values()) == pytest.approx(1)
    json.dumps(found.as_dict(), allow_nan=False)


def test_truth_is_recovered_and_order_and_units_do_not_matter():
    value, item, rater, system = table(shape=(150, 8, 30), keep=0.12, seed=2)
    found = variance_components(value, item, rater, system, intervals=False)
    for part, truth in (("item", 0.36), ("output", 0.16), ("rater", 0.25), ("residual", 0.49)):
        assert getattr(found, part).value == pytest.approx(truth, rel=0.5)
    order = np.random.default_rng(0).permutation(len(value))
    other = variance_components(10 - 2 * value[order], item[order] + 7, rater[order], system[order], intervals=False)
    for part in ("item", "system", "output", "rater", "residual"):
        assert getattr(other, part).value == pytest.approx(4 * getattr(found, part).value, rel=1e-4)


def test_equations_equal_those_of_the_full_covariance_matrix():
    """-2 log restricted likelihood from the full V, up to one constant, at two settings of the variances."""
    value, item, rater, _ = table(shape=(6, 2, 4), keep=0.7, seed=5)
    item, rater = (np.unique(codes, return_inverse=True)[1] for codes in (item, rater))
    model = MixedModel(value, np.zeros(len(value), dtype=np.int64), [item, rater])

    def whole(variances):
        cover = sum(v * (c[:, None] == c[None, :]) for v, c in zip(variances, (item, rater), strict=False))
        cover = cover + variances[2] * np.eye(len(value))
        inverse, ones = np.linalg.inv(cover), np.ones(len(value))
        mean = ones @ inverse @ value / (ones @ inverse @ ones)
        rest = value - mean
        return np.linalg.slogdet(cover)[1] + math.log(ones @ inverse @ ones) + rest @ inverse @ rest

    settings = np.array([[0.5, 0.3, 0.8], [0.1, 1.5, 0.4], [0.0, 0.2, 1.0]])
    ours = np.array([model._deviance(row) for row in settings])
    theirs = np.array([whole(row) for row in settings])
    assert ours - ours[0] == pytest.approx(theirs - theirs[0], abs=1e-9)
    gradient = model._gradient(settings[0])
    for place in range(3):
        up, down = settings[0].copy(), settings[0].copy()
        up[place] *= math.exp(1e-5)
        down[place] *= math.exp(-1e-5)
        assert gradient[place] == pytest.approx((whole(up) - whole(down)) / 2e-5, rel=1e-5)


def test_absent_component_is_0_with_an_upper_end():
    rng = np.random.default_rng(1)
    data = rng.normal(0, 1, (40, 1)) + rng.normal(0, 1, (40, 6))
    data -= data.mean(axis=0)
    item, rater = (grid.ravel() for grid in np.indices(data.shape))
    found = variance_components(data.ravel(), item, rater)
    assert found.rater.value == 0
    assert found.rater.low == 0
    assert 0 < found.rater.high < 0.2


def test_unidentifiable_components_are_reported():
    value, item, rater, system = table(shape=(15, 3, 1), keep=1)
    one = variance_components(value, item, rater, system)
    assert one.rater.note == "there is one rater only"
    assert "part of the residual" in one.output.note
    value, item, rater, system = table(shape=(15, 1, 4), keep=1)
    assert "part of the item's" in variance_components(value, item, rater, system).output.note
    assert variance_components(value, np.arange(len(value)), rater).item.note.startswith("no item has two ratings")
    assert variance_components([], [], []).note == "fewer than 3 ratings"
    equal = variance_components([2, 2, 2, 2], [0, 0, 1, 1], [0, 1, 0, 1])
    assert equal.note == "all ratings are equal"
    assert equal.shares == {}
    assert math.isnan(equal.reliability())
    for found in (equal, variance_components([], [], [])):
        plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert plain["ratings_per_output"] is None


def test_many_items_are_subsampled():
    value, item, rater, _ = table(shape=(60, 1, 4), keep=1)
    found = variance_components(value, item, rater, max_items=40, intervals=False)
    assert found.note == "from 40 of 60 items, drawn at random"
    assert found.n == 160


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_by_size_equal_the_full_covariance(monkeypatch, sparse):
    """Unequal sizes of the eliminated factor, held in memory or not; deviance and effects from the full V."""
    if sparse:
        monkeypatch.setattr(mixed, "_CELLS", 0)
    value, item, rater, system = table(shape=(9, 3, 5), keep=0.5, seed=3)
    item, rater, system = (np.unique(codes, return_inverse=True)[1] for codes in (item, rater, system))
    model = MixedModel(value, system, [item, rater])
    variances = np.array([0.5, 0.3, 0.8])
    cover = sum(v * (c[:, None] == c[None, :]) for v, c in zip(variances, (item, rater), strict=False))
    cover = cover + variances[2] * np.eye(len(value))
    inverse, x = np.linalg.inv(cover), np.eye(system.max() + 1)[system]
    cover_fixed = np.linalg.inv(x.T @ inverse @ x)
    fixed = cover_fixed @ x.T @ inverse @ value
    rest = value - x @ fixed
    effects = model.effects(variances[:2] / variances[2], variances[2])
    assert effects.fixed == pytest.approx(fixed, abs=1e-9)
    assert effects.fixed_sd == pytest.approx(np.sqrt(np.diag(cover_fixed)), abs=1e-9)
    projected = inverse - inverse @ x @ cover_fixed @ x.T @ inverse
    for place, codes in enumerate((item, rater)):
        z = np.eye(codes.max() + 1)[codes]
        assert effects.random[place] == pytest.approx(variances[place] * z.T @ inverse @ rest, abs=1e-9)
        spread = variances[place] - variances[place] ** 2 * np.diag(z.T @ projected @ z)
        assert effects.random_sd[place] == pytest.approx(np.sqrt(spread), abs=1e-9)


def test_precise_fit_does_not_depend_on_its_start():
    value, item, rater, _ = table(shape=(60, 1, 12), keep=0.3, seed=4)
    item, rater = (np.unique(codes, return_inverse=True)[1] for codes in (item, rater))
    model = MixedModel(value, np.zeros(len(value), dtype=np.int64), [item, rater])
    cold = model.fit(precise=True)
    for factor in (0.5, 0.9, 1.3, 4.0):
        warm = model.fit(cold.variances / cold.residual * factor, precise=True)
        assert warm.variances == pytest.approx(cold.variances, rel=1e-9)
        assert warm.residual == pytest.approx(cold.residual, rel=1e-9)
    values = np.append(cold.variances, cold.residual)
    assert model._gradient(values) == pytest.approx(np.zeros(3), abs=1e-7)
