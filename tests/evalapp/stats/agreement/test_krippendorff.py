"""Krippendorff's alpha: published values, comparison with the krippendorff package, the bootstrap, undefined cases."""

from __future__ import annotations

import gzip
import json
import math

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.agreement.krippendorff import SCALES, krippendorff_alpha
from evalapp.stats.agreement.normalise import normalise_ratings
from evalapp.stats.resampling.bootstrap import Bootstrap, ClusterDraws, percentile_interval


def long_form(table):
    """Raters x units with None for missing, as (unit, value) columns."""
    cells = [(unit, value) for row in table for unit, value in enumerate(row) if value is not None]
    return [unit for unit, _ in cells], [value for _, value in cells]


def digits(text):
    return [None if sign == "." else int(sign) for sign in text]


BINARY = [digits("0100000010"), digits("1110010000")]
# Four coders, twelve units, as printed by Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", part C.
FOUR_CODERS = [digits("123321412..."), digits("1233224125.3"), digits(".3332342251."), digits("12332441251.")]


@pytest.mark.parametrize(
    ("table", "scale", "expected"),
    [
        # Krippendorff (2011), examples A and B.
        (BINARY, "nominal", 0.095238),
        ([list("aabbdcccedda"), list("babbbccceddd")], "nominal", 0.691964),
        # Krippendorff (2011), examples C and D.
        (FOUR_CODERS, "nominal", 0.743421),
        (FOUR_CODERS, "ordinal", 0.815),
        (FOUR_CODERS, "interval", 0.849),
        (FOUR_CODERS, "ratio", 0.797),
    ],
)
def test_published_values(table, scale, expected):
    unit, value = long_form(table)
    places = 1e-6 if scale == "nominal" else 1e-3
    assert krippendorff_alpha(unit, value, scale=scale, bootstrap=Bootstrap(resamples=0)).value == pytest.approx(
        expected, abs=places
    )


tables = st.integers(2, 12).flatmap(
    lambda units: st.lists(
        st.lists(st.sampled_from([1, 2, 3, 4, 7, None]), min_size=units, max_size=units), min_size=2, max_size=5
    )
)


@pytest.mark.parametrize("scale", SCALES)
@settings(max_examples=60)
@given(table=tables)
def test_equal_to_the_krippendorff_package(scale, table):
    unit, value = long_form(table)
    found = krippendorff_alpha(unit, value, scale=scale, bootstrap=Bootstrap(resamples=0))
    data = np.array([[math.nan if v is None else v for v in row] for row in table], dtype=float)
    paired = data[:, np.isfinite(data).sum(axis=0) >= 2]
    if paired.size == 0:
        assert found.note == "no unit was rated twice"
    elif len(np.unique(paired[np.isfinite(paired)])) == 1:
        assert found.note == "all ratings are equal"
    else:
        expected = krippendorff.alpha(reliability_data=data, level_of_measurement=scale)
        assert found.value == pytest.approx(expected, abs=1e-9)
        assert found.n == paired.shape[1]


@pytest.mark.parametrize("scale", SCALES)
def test_interval_equals_a_plain_loop_over_copied_units(scale):
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 30)
    data = np.clip(truth[None, :] + rng.integers(-1, 2, (3, 30)), 1, 5).astype(float)
    data[rng.random(data.shape) < 0.15] = np.nan
    used = np.isfinite(data).sum(axis=0) >= 2
    unit, value = long_form([[None if math.isnan(v) else v for v in row] for row in data])
    found = krippendorff_alpha(unit, value, scale=scale, bootstrap=Bootstrap(resamples=50, seed=3))
    counts = ClusterDraws(int(used.sum()), 3).take(50).astype(int)
    values = [
        krippendorff.alpha(reliability_data=np.repeat(data[:, used], column, axis=1), level_of_measurement=scale)
        for column in counts.T
    ]
    assert (found.low, found.high) == pytest.approx(percentile_interval(np.array(values)), abs=1e-9)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("scale", SCALES)
def test_order_and_unit_of_measurement_do_not_matter(scale):
    unit, value = (np.array(column) for column in long_form(FOUR_CODERS))
    plain = krippendorff_alpha(unit, value, scale=scale, bootstrap=Bootstrap(resamples=40))
    order = np.random.default_rng(0).permutation(len(unit))
    for other in (
        krippendorff_alpha(unit[order], value[order], scale=scale, bootstrap=Bootstrap(resamples=40)),
        krippendorff_alpha(
            unit, (0 if scale == "ratio" else 1000) + 3.0 * value, scale=scale, bootstrap=Bootstrap(resamples=40)
        ),
    ):
        assert other.value == pytest.approx(plain.value, abs=1e-9)
        assert (other.low, other.high) == pytest.approx((plain.low, plain.high), abs=1e-9)
    if scale in ("nominal", "ordinal"):
        assert krippendorff_alpha(
            unit, 10.0**value, scale=scale, bootstrap=Bootstrap(resamples=0)
        ).value == pytest.approx(plain.value)


@pytest.mark.parametrize(
    ("unit", "value", "reason"),
    [
        ([], [], "no unit was rated twice"),
        ([0, 1, 2], [1, 2, 3], "no unit was rated twice"),
        ([0, 0], [1, math.nan], "no unit was rated twice"),
        ([0, 0, 1, 1], [2, 2, 2, 2], "all ratings are equal"),
    ],
)
def test_undefined_with_a_reason(unit, value, reason):
    for scale in SCALES:
        found = krippendorff_alpha(unit, value, scale=scale)
        assert not found.is_defined
        assert found.note == reason


def test_one_unit_has_a_value_but_no_interval():
    found = krippendorff_alpha([0, 0, 0], [1, 2, 2], scale="nominal")
    assert found.is_defined
    assert "no interval: 1 units only" in found.note


def test_labels_need_the_nominal_scale_and_the_scale_must_be_known():
    assert krippendorff_alpha(
        [0, 0, 1, 1], ["a", "a", "b", None], scale="nominal", bootstrap=Bootstrap(resamples=0)
    ).note
    assert (
        krippendorff_alpha([0, 0, 1, 1], ["a", "a", "b", "b"], scale="nominal", bootstrap=Bootstrap(resamples=0)).value
        == 1
    )
    with pytest.raises(ValueError, match="numbers"):
        krippendorff_alpha([0, 0], ["a", "b"], scale="interval")
    with pytest.raises(ValueError, match="nominal, ordinal, interval, ratio"):
        krippendorff_alpha([0, 0], [1, 2], scale="circular")


@pytest.mark.parametrize("scale", SCALES)
def test_many_units_of_few_patterns_are_drawn_by_pattern(scale):
    """The interval agrees with drawing the units one by one (each unit as its own cluster)."""
    rng = np.random.default_rng(5)
    truth = rng.integers(1, 5, 3000)
    data = np.clip(truth + rng.integers(-1, 2, (3, 3000)), 1, 4).astype(float)
    data[0, rng.random(3000) < 0.2] = np.nan
    unit, value = np.tile(np.arange(3000), 3), data.ravel()
    kinds = krippendorff_alpha(unit, value, scale=scale, bootstrap=Bootstrap(seed=1))
    units = krippendorff_alpha(unit, value, scale=scale, bootstrap=Bootstrap(seed=1, cluster=unit))
    assert kinds.value == pytest.approx(units.value, abs=1e-12)
    assert kinds.value == pytest.approx(krippendorff.alpha(data, level_of_measurement=scale), abs=1e-12)
    assert kinds.value == pytest.approx(
        krippendorff_alpha(unit, value, scale=scale, bootstrap=Bootstrap(resamples=0)).value, abs=1e-12
    )
    width = units.high - units.low
    assert (kinds.low, kinds.high) == pytest.approx((units.low, units.high), abs=0.15 * width)
    order = rng.permutation(len(unit))
    assert krippendorff_alpha(unit[order], value[order], scale=scale, bootstrap=Bootstrap(seed=1)) == kinds


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("raters", [2, 5, 9])
def test_every_counting_method_gives_the_same(scale, raters):
    """Sorted, shuffled, named and widely spaced rows take different code paths to one number."""
    rng = np.random.default_rng(raters)
    truth = rng.integers(1, 8, 700)
    data = np.clip(truth + rng.integers(-1, 2, (raters, 700)), 1, 7).astype(float)
    unit, value = np.repeat(np.arange(700) * 3, raters), data.T.ravel()
    expected = krippendorff.alpha(data, level_of_measurement=scale)
    order = rng.permutation(len(unit))
    names = np.array([f"u{code}" for code in unit])
    for columns in ((unit, value), (unit[order], value[order]), (names, value), (unit[order] * 10**9, value[order])):
        found = krippendorff_alpha(*columns, scale=scale, bootstrap=Bootstrap(resamples=0))
        assert found.value == pytest.approx(expected, abs=1e-12)
        assert found.n == 700
    parts = krippendorff_alpha(unit, value / 3, scale=scale, bootstrap=Bootstrap(resamples=0))
    assert parts.value == pytest.approx(expected, abs=1e-12)
    assert (
        krippendorff_alpha(unit, np.full(len(unit), 2.0), scale=scale, bootstrap=Bootstrap(resamples=0)).note
        == "all ratings are equal"
    )


def test_ratio_scale_accepts_zeros_but_no_negative_values():
    # By hand: units (0, 0), (0, 2): D_o = (0 + 2 * 1) / 4; marginals 3 zeros and 1 two: D_e = 2 * 3 * 1 / (4 * 3).
    assert krippendorff_alpha(
        [0, 0, 1, 1], [0, 0, 0, 2], scale="ratio", bootstrap=Bootstrap(resamples=0)
    ).value == pytest.approx(0.0)
    assert "at least 0" in krippendorff_alpha([0, 0, 1, 1], [-1, 0, 0, 2], scale="ratio").note


# Source: column alpha of the README that comes with the data.
@pytest.mark.parametrize(
    ("name", "aspect", "method", "expected"),
    [
        ("rankme", "likert_joint_informativeness", "raw", 0.81),
        ("rankme", "likert_joint_naturalness", "raw", 0.02),
        ("rankme", "likert_joint_quality", "raw", 0.01),
        ("rankme", "likert_apart_informativeness", "raw", 0.53),
        ("rankme", "likert_apart_naturalness", "raw", 0.04),
        ("rankme", "likert_apart_quality", "raw", 0.19),
        ("dstc7_dev", "relevance", "raw", 0.17),
        ("dstc7_dev", "informativeness", "raw", 0.13),
        ("usr_personachat", "overall", "raw", 0.64),
        ("grade_dailydialog", "coherence", "raw", 0.08),
        ("grade_empathetic", "coherence", "raw", 0.03),
        ("scratchplot", "naturalness", "raw", 0.32),
        ("scratchplot", "coherence", "raw", 0.24),
        ("e2e", "naturalness", "rank", 0.13),
        ("e2e", "quality", "rank", 0.20),
        ("usr_topicalchat", "overall", "raw", 0.66),
        ("grade_convai2", "coherence", "raw", 0.12),
        ("predictive_engagement", "engagement", "raw", 0.76),
        ("union_roc", "reasonable", "raw", 0.15),
        ("scratchplot", "interestingness", "raw", 0.46),
    ],
)
def test_alpha_of_real_data(shared_data, name, aspect, method, expected):
    rows = [row for row in read(shared_data / name, "ratings") if row["aspect"] == aspect]
    item = [row["item"] for row in rows]
    value = normalise_ratings([row["value"] for row in rows], item, [row["rater"] for row in rows], method=method)
    unit = [f"{row['item']}\t{row['system']}" for row in rows]
    assert krippendorff_alpha(unit, value, bootstrap=Bootstrap(cluster=item, resamples=0)).value == pytest.approx(
        expected, abs=0.0051
    )


# Source: the same column; verdicts are nominal, sides as stored.
@pytest.mark.parametrize(
    ("name", "items", "expected"),
    [("pandalm", "p-", 0.86), ("scratchplot", "r1-", 0.15), ("scratchplot", "r2-", 0.23)],
)
def test_alpha_of_real_comparisons(shared_data, name, items, expected):
    rows = [row for row in read(shared_data / name, "comparisons") if row["item"].startswith(items)]
    unit = ["\t".join([row["item"], *sorted((row["system_a"], row["system_b"]))]) for row in rows]
    found = krippendorff_alpha(
        unit, [row["verdict"] for row in rows], scale="nominal", bootstrap=Bootstrap(resamples=0)
    )
    assert found.value == pytest.approx(expected, abs=0.0051)


def read(folder, name):
    path = next(folder.glob(f"{name}.jsonl*"))
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
