"""Rankings by comparisons that an evaluator assists: equal to plain ones without it, and right with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from evalapp.stats.assisted.comparisons import ScoredOutputs, collect_pairs, rank_by_assisted_comparisons
from evalapp.stats.core.coding import ColumnError
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons, read_judgements
from evalapp.stats.ranking.systems import rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap

QUALITY = np.array([0.5, 0.2, 0.0, -0.7])
N_SYSTEMS = len(QUALITY)


def simulate(rng, n_items=150, judged=60, noise=0.5, size=1, ties=0.3):
    """All pairs of the systems on the `judged` first items; outputs of all items. Items of a cluster of `size` share
    half of the variance."""
    latent = QUALITY + rng.normal(size=(n_items, N_SYSTEMS))
    if size > 1:
        shared = rng.normal(size=(n_items // size, N_SYSTEMS))[np.arange(n_items) // size]
        latent = QUALITY + np.sqrt(0.5) * (latent - QUALITY + shared)
    score = latent + noise * rng.normal(size=latent.shape)
    item, system = np.divmod(np.arange(n_items * N_SYSTEMS), N_SYSTEMS)
    outputs = ScoredOutputs(item, item // size, system, score.ravel())
    first, second, verdict = [], [], []
    for k in range(judged):
        for a in range(N_SYSTEMS):
            for b in range(a + 1, N_SYSTEMS):
                apart = latent[k, a] - latent[k, b] + rng.logistic()
                first.append(k * N_SYSTEMS + a)
                second.append(k * N_SYSTEMS + b)
                verdict.append("tie" if abs(apart) < ties else "a" if apart > 0 else "b")
    return np.array(first), np.array(second), np.array(verdict), outputs, score


def by_system(ranking):
    return {row.system: row for row in sorted(ranking.systems, key=lambda row: row.system)}


@pytest.mark.parametrize("method", ["win-rate", "bradley-terry", "davidson"])
def test_useless_scores_give_the_plain_ranking(method):
    first, second, verdict, outputs, _ = simulate(np.random.default_rng(1), n_items=60)
    constant = ScoredOutputs(outputs.item, outputs.cluster, outputs.system, np.zeros(len(outputs.item)))
    found = rank_by_assisted_comparisons(first, second, verdict, constant, method=method)
    assert found.weight == 0
    item, system = outputs.item[first], outputs.system
    if method == "win-rate":
        usual = rank_by_win_rate(item, system[first], system[second], verdict)
    else:
        columns = PairwiseComparisons(system[first], system[second], verdict, item=item)
        usual = rank_by_comparisons(columns, model=ComparisonModel(method=method), bootstrap=Bootstrap(cluster=item))
    for name, row in by_system(usual).items():
        own = by_system(found.assisted)[name]
        assert own.estimate.value == pytest.approx(row.estimate.value)
        assert (own.rank, own.rank_low, own.rank_high) == (row.rank, row.rank_low, row.rank_high)
        if method != "win-rate":
            assert own.estimate.low == pytest.approx(row.estimate.low)


def test_points_add_up():
    rng = np.random.default_rng(2)
    first, second, verdict, outputs, score = simulate(rng, noise=0.2)
    found = rank_by_assisted_comparisons(first, second, verdict, outputs, method="win-rate")
    human = by_system(found.human)
    # The assisted rates of all systems still add up to those of the judgements: each comparison has one point.
    total = sum(row.estimate.value for row in by_system(found.assisted).values())
    assert total == pytest.approx(sum(row.estimate.value for row in human.values()))
    assert total == pytest.approx(N_SYSTEMS / 2)
    assert found.weight > 0.3
    assert found.n_pairs == 150 * 6
    assert found.n_judged == len(first)


@pytest.mark.parametrize("method", ["win-rate", "bradley-terry", "davidson"])
def test_all_judged_gives_the_human_values(method):
    """Without further pairs the predictions cancel."""
    first, second, verdict, outputs, _ = simulate(np.random.default_rng(3), n_items=60, judged=60)
    found = rank_by_assisted_comparisons(first, second, verdict, outputs, method=method)
    for name, row in by_system(found.human).items():
        assert by_system(found.assisted)[name].estimate.value == pytest.approx(row.estimate.value, abs=1e-6)
        assert found.variance[name] == pytest.approx(found.human_variance[name], rel=1e-6)


@pytest.mark.parametrize(
    ("method", "size"),
    [("win-rate", 1), ("bradley-terry", 1), ("davidson", 1), ("win-rate", 3), ("bradley-terry", 3)],
)
def test_coverage_and_width(method, size):
    """120 campaigns of 4 systems. The truth is the mean of 40 large campaigns in which everything is judged."""
    truth: dict[int, list[float]] = {k: [] for k in range(N_SYSTEMS)}
    for seed in range(40):
        big = simulate(np.random.default_rng([5, seed]), n_items=600, judged=600, size=size)
        for name, row in by_system(rank_by_assisted_comparisons(*big[:4], method=method).human).items():
            truth[name].append(row.estimate.value)
    hits, widths = [], []
    for seed in range(120):
        first, second, verdict, outputs, _ = simulate(
            np.random.default_rng([6, seed]), n_items=300, judged=60, size=size
        )
        found = rank_by_assisted_comparisons(
            first, second, verdict, outputs, method=method, bootstrap=Bootstrap(resamples=20, seed=seed)
        )
        for name, row in by_system(found.assisted).items():
            hits.append(row.estimate.low <= np.mean(truth[name]) <= row.estimate.high)
        widths.append([sum(found.variance.values()), sum(found.human_variance.values())])
    assert 0.91 <= np.mean(hits) <= 0.985
    assisted, human = np.mean(widths, axis=0)
    assert assisted < 0.95 * human


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["win-rate", "bradley-terry", "davidson"])
@pytest.mark.parametrize("n", [0, 4])
def test_no_comparison_gives_no_ranking(method, n):
    """As when no scored output was compared; `n` outputs have scores."""
    outputs = ScoredOutputs(np.arange(n) // 2, np.arange(n) // 2, np.arange(n) % 2, np.arange(n, dtype=float))
    none = np.zeros(0, dtype=np.int64)
    found = rank_by_assisted_comparisons(none, none, none.astype(str), outputs, method=method)
    assert (found.assisted.systems, found.human.systems, found.n_judged) == ((), (), 0)


def test_outputs_of_different_items_are_refused():
    first, second, verdict, outputs, _ = simulate(np.random.default_rng(7))
    with pytest.raises(ColumnError, match="same item"):
        rank_by_assisted_comparisons(first, second + N_SYSTEMS, verdict, outputs)


def test_win_rate_by_hand():
    """Systems x and y on 20 items; the first 10 were judged. With a fixed weight the assisted rate of x is its
    rate plus the weight times (mean prediction of all items - mean prediction of the judged ones)."""
    rng = np.random.default_rng(8)
    item, system = np.divmod(np.arange(40), 2)
    outputs = ScoredOutputs(item, item, system, rng.normal(size=40))
    first, second = 2 * np.arange(10), 2 * np.arange(10) + 1
    verdict = np.where(outputs.score[first] + rng.normal(size=10) > outputs.score[second], "a", "b")
    judged = read_judgements(PairwiseComparisons(system[first], system[second], verdict, item=item[first]))
    pairs = collect_pairs(judged, judged.linked, item[first], outputs, 0)
    points = expit(slopes(pairs, outputs) * (outputs.score[::2] - outputs.score[1::2]) / np.std(outputs.score))
    assert pairs.change.sum() == pytest.approx(10 * (points.mean() - points[:10].mean()))


def slopes(pairs, outputs):
    """The slope of each item's fold, by minimising the loss of the judgements of the other folds."""
    apart = (outputs.score[::2] - outputs.score[1::2]) / np.std(outputs.score)
    points = 1.0 - pairs.outcome / 2

    def loss(slope, rows):
        p = expit(slope * apart[:10][rows])
        return -(points[rows] * np.log(p) + (1 - points[rows]) * np.log(1 - p)).sum() + 0.005 * slope**2

    options = {"bounds": (0, 30), "method": "bounded", "options": {"xatol": 1e-9}}
    found = [minimize_scalar(loss, args=(pairs.fold[:10] != k,), **options) for k in range(10)]
    return np.array([found[k].x for k in pairs.fold])
