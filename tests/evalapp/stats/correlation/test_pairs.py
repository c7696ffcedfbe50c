"""Pair statistics: by hand, against SciPy and plain loops, invariances, missing scores, real data."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evalapp.stats.agreement.normalise import aggregate_ratings
from evalapp.stats.core.coding import ColumnError
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.correlation.pairs import NO_PAIR, acc_eq, calibrate_ties, tau_eq
from evalapp.stats.correlation.system_pairs import soft_pairwise_accuracy, system_pairwise_accuracy
from evalapp.stats.resampling.bootstrap import Bootstrap

# One item, four outputs. Pairs (human | metric, difference): 12 (< | < .1) C, 13 (< | < .2) C, 14 (< | > .1) D, 23 (= |
# < .1), 24 (= | > .2), 34 (= | > .3) T_h: 2/6 are right. Ties up to .1: 12 becomes wrong, 23 right, 14 stays wrong,
# 2/6; up to .2: 13 becomes wrong, 24 right, 2/6; up to .3: 34 becomes right, 3/6.
METRIC = [0.3, 0.4, 0.5, 0.2]
HUMAN = [1, 2, 2, 2]
ITEM = [0, 0, 0, 0]

scores = st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4), st.integers(0, 3)), min_size=4, max_size=24)


def plain(metric, human, item, epsilon=0.0) -> float:
    """The definition, pair by pair."""
    shares = []
    for group in sorted(set(item)):
        rows = [row for row, of in enumerate(item) if of == group]
        right = []
        for i, j in itertools.combinations(rows, 2):
            m = 0 if abs(metric[i] - metric[j]) <= epsilon else math.copysign(1, metric[i] - metric[j])
            h = 0 if human[i] == human[j] else math.copysign(1, human[i] - human[j])
            right.append(m == h)
        if right:
            shares.append(sum(right) / len(right))
    return sum(shares) / len(shares) if shares else math.nan


def scored(seed=0, n_items=12, n_systems=5):
    rng = np.random.default_rng(seed)
    item, system = np.repeat(np.arange(n_items), n_systems), np.tile(np.arange(n_systems), n_items)
    quality = rng.normal(size=len(item)) + 0.5 * system
    human = np.round(np.clip(3 + quality + rng.normal(size=len(item)), 1, 5))
    return quality + rng.normal(size=len(item)), human, item, system


def test_worked_by_hand():
    assert acc_eq(METRIC, HUMAN, ITEM).value == pytest.approx(2 / 6)
    assert tau_eq(METRIC, HUMAN, ITEM).value == pytest.approx(-2 / 6)
    assert acc_eq(METRIC, HUMAN, ITEM, epsilon=0.1).value == pytest.approx(2 / 6)
    assert acc_eq(METRIC, HUMAN, ITEM, epsilon=0.3).value == pytest.approx(3 / 6)
    found = calibrate_ties(METRIC, HUMAN, ITEM)
    assert found.epsilon == pytest.approx(0.3)
    assert found.accuracy.value == pytest.approx(3 / 6)
    assert (found.n_pairs, found.accuracy.n) == (6, 1)
    # Means 1, 2, 3 and 1, 3, 2: two of three pairs of systems.
    assert system_pairwise_accuracy([1, 2, 3], [1, 3, 2], ["a", "b", "c"]).value == pytest.approx(2 / 3)


@settings(max_examples=60)
@given(rows=scores, epsilon=st.sampled_from([0.0, 1.0, 2.0]))
def test_equal_to_the_definition_and_calibration_to_the_best_threshold(rows, epsilon):
    metric, human, item = (list(column) for column in zip(*rows, strict=True))
    expected = plain(metric, human, item, epsilon)
    found = acc_eq(metric, human, item, epsilon=epsilon, bootstrap=Bootstrap(resamples=0))
    calibrated = calibrate_ties(metric, human, item, bootstrap=Bootstrap(resamples=0, seed=13))
    if math.isnan(expected):
        assert found.note == NO_PAIR == calibrated.accuracy.note
        return
    assert found.value == pytest.approx(expected, abs=1e-12)
    candidates = {float(abs(a - b)) for a in metric for b in metric} | {0.0}
    best = max(plain(metric, human, item, candidate) for candidate in candidates)
    assert calibrated.accuracy.value == pytest.approx(best, abs=1e-12)
    smallest = min(c for c in candidates if plain(metric, human, item, c) >= best - 1e-12)
    assert calibrated.epsilon == smallest


@settings(max_examples=30)
@given(seed=st.integers(0, 999), scale=st.sampled_from([0.01, 3.0, 1e6]), shift=st.integers(-50, 50))
def test_order_of_rows_units_names_and_sign(seed, scale, shift):
    metric, human, item, system = scored(seed)
    order = np.random.default_rng(seed).permutation(len(item))
    names = np.array([f"item {i:02}" for i in item])
    plainly, moved = (
        calibrate_ties(m, human[o], i[o], folds=3, bootstrap=Bootstrap(resamples=40, seed=13))
        for m, i, o in ((metric, item, slice(None)), ((scale * metric + shift)[order], names, order))
    )
    assert moved.epsilon == pytest.approx(scale * plainly.epsilon, rel=1e-9)
    for one, two in ((plainly.accuracy, moved.accuracy), (plainly.cross_validated, moved.cross_validated)):
        assert (two.value, two.low, two.high) == pytest.approx((one.value, one.low, one.high), abs=1e-9)
    assert acc_eq(human, metric, item).value == pytest.approx(acc_eq(metric, human, item).value)
    assert acc_eq(np.exp(metric), human, item).value == pytest.approx(acc_eq(metric, human, item).value)
    soft = [soft_pairwise_accuracy(m, human[o], item[o], system[o]).value for m, o in (
        (metric, slice(None)), ((scale * metric + shift)[order], order))]  # fmt: skip
    assert soft[1] == pytest.approx(soft[0], abs=1e-9)
    other = np.roll(metric, 7)
    accuracy = system_pairwise_accuracy(metric, other, system)
    assert system_pairwise_accuracy(-metric, other, system).value == pytest.approx(1 - accuracy.value)


def test_without_ties_tau_eq_equals_scipys_tau():
    rng = np.random.default_rng(3)
    metric, human = rng.normal(size=(2, 60))
    expected = stats.kendalltau(metric, human)[0]
    assert tau_eq(metric, human, np.zeros(60)).value == pytest.approx(expected, abs=1e-12)


def test_soft_accuracy_of_two_systems_is_the_distance_of_scipys_permutation_tests():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(2, 2, 9)) + np.array([0.4, 0.0])[None, :, None]
    p = [
        stats.permutation_test(
            tuple(pair), lambda a, b: np.sum(a - b), permutation_type="samples", alternative="greater"
        ).pvalue
        for pair in scores
    ]  # exact: all 2^9 signs
    item, system = np.tile(np.arange(9), 2), np.repeat(["a", "b"], 9)
    found = soft_pairwise_accuracy(*scores.reshape(2, -1), item, system, permutations=40_000)
    assert found.value == pytest.approx(1 - abs(p[0] - p[1]), abs=0.01)


def test_soft_accuracy_with_gaps_uses_the_shared_items():
    metric, human, item, system = scored(n_systems=3)
    whole = soft_pairwise_accuracy(metric, human, item, system)
    # The same through the code for gaps: a separate item for a fourth system that shares none.
    columns = [np.append(c, v) for c, v in ((metric, 1.0), (human, 1.0), (item, 99), (system, 7))]
    found = soft_pairwise_accuracy(*columns)
    assert found.n == whole.n == 3
    assert found.value == pytest.approx(whole.value, abs=0.03)  # other draws: one more item
    assert found.note.endswith("; 3 pairs of systems share no item")


def test_soft_accuracy_with_gaps_is_the_same_in_blocks_of_pairs(monkeypatch):
    rng = np.random.default_rng(8)
    item, system = np.repeat(np.arange(12), 6), np.tile(np.arange(6), 12)
    metric, human = rng.normal(size=(2, 72))
    metric[rng.random(72) < 0.2] = np.nan
    whole = soft_pairwise_accuracy(metric, human, item, system)
    monkeypatch.setattr("evalapp.stats.correlation.system_pairs._CELLS", 50)
    assert soft_pairwise_accuracy(metric, human, item, system) == whole


def test_missing_scores_are_excluded_or_wrong_and_counted():
    metric, human, item, _ = scored(seed=7)
    gaps = metric.copy()
    gaps[[0, 7, 12]] = np.nan
    kept = np.isfinite(gaps)
    dropped = acc_eq(gaps, human, item, bootstrap=Bootstrap(resamples=0))
    assert dropped.value == pytest.approx(plain(metric[kept], human[kept], item[kept]), abs=1e-12)
    assert dropped.note == "3 outputs without a metric score are left out"
    zero = acc_eq(gaps, human, item, nan_rule="zero", bootstrap=Bootstrap(resamples=0))
    assert zero.value < dropped.value
    assert zero.note == "3 outputs without a metric score are counted as wrong"
    by_hand = acc_eq([1, 2, np.nan], [1, 2, 3], [0, 0, 0], nan_rule="zero", bootstrap=Bootstrap(resamples=0))
    assert by_hand.value == pytest.approx(1 / 3)
    unrated = human.copy()
    unrated[~kept] = np.nan
    assert acc_eq(metric, unrated, item, nan_rule="zero", bootstrap=Bootstrap(resamples=0)).value == pytest.approx(
        dropped.value
    )


def test_threshold_fitted_on_noise_is_worse_on_held_out_data():
    rng = np.random.default_rng(2)
    metric, human = rng.normal(size=400), rng.integers(1, 4, 400)
    found = calibrate_ties(metric, human, np.repeat(np.arange(100), 4), folds=5)
    assert found.cross_validated.value <= found.accuracy.value
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high
    json.dumps(found.as_dict(), allow_nan=False)


def test_degenerate_input():
    none = calibrate_ties([], [], [], folds=2)
    assert math.isnan(none.epsilon)
    assert none.cross_validated.note == NO_PAIR
    assert "2 folds of 1 clusters" in calibrate_ties(METRIC, HUMAN, ITEM, folds=2).cross_validated.note
    assert acc_eq([1, 1], [2, 2], [0, 0]).value == 1
    assert acc_eq([1, 1], [2, 2], [0, 0]).note.startswith("no interval: 1 items only")
    assert system_pairwise_accuracy([1, 2], [1, 2], ["a", "a"]).note == "fewer than 2 systems"
    assert soft_pairwise_accuracy([1, 2], [1, 2], [0, 1], ["a", "a"]).note == "fewer than 2 systems"
    assert soft_pairwise_accuracy([1, 2], [1, 2], [0, 1], ["a", "b"]).note == "no two systems share an item"
    with pytest.raises(ValueError, match="epsilon"):
        acc_eq(METRIC, HUMAN, ITEM, epsilon=-1)
    with pytest.raises(ValueError, match="nan_rule"):
        acc_eq(METRIC, HUMAN, ITEM, nan_rule="guess")
    with pytest.raises(ColumnError, match="cluster"):
        acc_eq(METRIC, HUMAN, ITEM, bootstrap=Bootstrap(cluster=range(4)))


def test_length_on_topical_chat(shared_data):
    """All 360 outputs, length in words split at spaces, checked against mt-metrics-eval."""
    folder = shared_data / "usr_topicalchat"
    rows = [json.loads(line) for line in (folder / "ratings.jsonl").read_text(encoding="utf-8").splitlines()]
    columns = zip(*[(r["value"], r["item"], r["system"]) for r in rows if r["aspect"] == "overall"], strict=True)
    outputs = aggregate_ratings(*columns)
    texts = (json.loads(line) for line in (folder / "outputs.jsonl").read_text(encoding="utf-8").splitlines())
    words = {(row["item"], row["system"]): len(row["text"].split()) for row in texts}
    length = [words[key] for key in zip(outputs.item.tolist(), outputs.system.tolist(), strict=True)]
    rest = outputs.mean, outputs.item, outputs.system
    found = correlate(length, *rest, bootstrap=Bootstrap(resamples=0))
    values = [found[name].value for name in ("pearson", "spearman", "kendall")]
    assert values == pytest.approx([0.3343, 0.3009, 0.2149], abs=5e-5)
    assert correlate(length, *rest, settings=CorrelationSettings(level="system"), bootstrap=Bootstrap(resamples=0))[
        "pearson"
    ].value == pytest.approx(0.9684, abs=5e-5)
    calibrated = calibrate_ties(length, *rest[:2])
    assert calibrated.accuracy.value == pytest.approx(0.5789, abs=5e-5)
    accuracy = system_pairwise_accuracy(length, rest[0], rest[2])
    assert accuracy.value == pytest.approx(13 / 15)
    # The printed .9125 uses single precision, where equal sums of thirds tie or not depending on rounding (.9161 here).
    assert soft_pairwise_accuracy(length, *rest).value == pytest.approx(0.9125, abs=0.002)
