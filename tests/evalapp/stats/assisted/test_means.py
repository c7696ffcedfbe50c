"""Means of systems that an evaluator assists: by hand, against ppi-python, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from evalapp.stats.assisted.means import AssistedOptions, deal_folds, estimate_means, rank_by_assisted_mean
from evalapp.stats.core.coding import ColumnError
from evalapp.stats.ranking.systems import rank_by_mean
from evalapp.stats.resampling.bootstrap import Bootstrap

NAN = float("nan")
#: Four judged outputs of eight scored ones.
HUMAN = [1.0, 3.0, 2.0, 5.0, NAN, NAN, NAN, NAN]
SCORE = [1.0, 2.0, 2.0, 4.0, 3.0, 1.0, 5.0, 2.0]


def estimate(weight=None, target="items-like-these", human=HUMAN, score=SCORE, cluster=range(8)):
    options = AssistedOptions(weight=weight, target=target)
    return estimate_means(human, score, list(cluster), ["m"] * len(human), options=options)


def test_by_hand():
    """Mean of Y 2.75, of f over the judged 2.25, over all 2.5. Residuals at weight 1: 0, 1, 0, 1 with mean .5."""
    assert estimate(0.0).value[0] == pytest.approx(2.75)
    assert estimate(0.5).value[0] == pytest.approx(0.5 * 2.5 + (2.75 - 0.5 * 2.25))
    assert estimate(1.0).value[0] == pytest.approx(3.0)
    # Variance of Y: squares of -1.75, .25, -.75, 2.25 add up to 8.75; 8.75 / 3 / 4 without the evaluator.
    assert estimate(0.0).variance[0] == pytest.approx(8.75 / 12)
    # These items: (1 - 4 / 8) of the variance of the residuals, 1 / 3, by 4.
    assert estimate(1.0, "these-items").variance[0] == pytest.approx(0.5 * (1 / 3) / 4)


@pytest.mark.parametrize(
    ("weight", "low", "high"),
    [
        (0.0, 1.300587086932402, 4.199412913067598),
        (0.5, 1.6287697657945301, 4.12123023420547),
        (1.0, 1.8123402588604662, 4.187659741139534),
    ],
)
def test_equals_ppi_python(weight, low, high):
    """Ends of `ppi_mean_ci(alpha=.05)` of ppi-python 0.2.3 with the other four outputs as its unlabelled set, whose
    weight is ours times 1 - n / N. It divides by n where the sandwich divides by n - 1."""
    means = estimate(weight)
    half = norm.ppf(0.975) * np.sqrt(means.variance[0] * 3 / 4)
    assert (means.value[0] - half, means.value[0] + half) == pytest.approx((low, high), abs=1e-9)


def test_weight_1_is_the_difference_estimator():
    """Särndal, Swensson and Wretman 1992, 6.3: the mean prediction plus the mean residual of the sample."""
    rng = np.random.default_rng(1)
    score, is_judged = rng.normal(size=200), rng.random(200) < 0.3
    rating = score + rng.normal(size=200)
    means = estimate(1.0, human=np.where(is_judged, rating, NAN), score=score, cluster=range(200))
    assert means.value[0] == pytest.approx(score.mean() + (rating - score)[is_judged].mean())


def test_all_judged():
    human = [1.0, 3.0, 2.0, 5.0, 4.0, 2.0, 1.0, 2.0]
    these = estimate(target="these-items", human=human)
    assert (these.value[0], these.variance[0]) == pytest.approx((2.5, 0.0))
    assert (these.estimate(0).low, these.estimate(0).high) == (2.5, 2.5)
    alike = estimate(human=human)
    assert alike.variance[0] == pytest.approx(alike.human_variance[0]) == pytest.approx(np.var(human, ddof=1) / 8)


def test_clusters_by_hand():
    """Two outputs per group are one observation: their sums vary, not the single ratings."""
    human = [1.0, 2.0, 5.0, 4.0, NAN, NAN, NAN, NAN]
    means = estimate(0.0, human=human, cluster=[0, 0, 1, 1, 2, 2, 3, 3])
    # Groups deviate by -3 and 3 from 2 x 3; each by 4 outputs, squared, times 2 / (2 - 1).
    assert means.variance[0] == pytest.approx(2 * (2 * (3 / 4) ** 2))
    assert means.estimate(0).low != means.estimate(0).low  # two groups give no interval


def test_joint_covariance_by_hand():
    """Weight 1, groups of two outputs, two judged ones. Influence of the groups on the first mean: (-1.5 / 4) minus
    half of (-1.5 / 4) = -.1875 and .1875 of the judged, half of (-1.5 / 4) = -.1875 and .1875 of the others; on the
    second: -.1875, .1875, half of (-2.5 / 4) = -.3125, .3125. Times 2 / (2 - 1)."""
    human = [*HUMAN, 2.0, 2.0, 3.0, 4.0, NAN, NAN, NAN, NAN]
    score = [*SCORE, 2.0, 1.0, 3.0, 3.0, 1.0, 2.0, 4.0, 4.0]
    group = np.tile(np.repeat(np.arange(4), 2), 2)
    means = estimate_means(human, score, group, np.repeat(["a", "b"], 8), options=AssistedOptions(weight=1.0))
    covariance = 4 * (0.1875**2 + 0.1875 * 0.3125)
    expected = [[8 * 0.1875**2, covariance], [covariance, 4 * (0.1875**2 + 0.3125**2)]]
    np.testing.assert_allclose(means.covariance, expected)
    assert means.n_groups.tolist() == [2, 2]


def test_degrees_of_freedom_are_judged_groups_minus_1():
    rng = np.random.default_rng(9)
    human = np.where(np.arange(40) < 18, rng.normal(size=40), NAN)
    means = estimate(human=human, score=rng.normal(size=40), cluster=np.arange(40) // 3)
    found = means.estimate(0)
    assert (found.high - found.low) / 2 == pytest.approx(student.ppf(0.975, 5) * np.sqrt(means.variance[0]))


def test_unit_of_the_score_does_not_matter():
    rng = np.random.default_rng(2)
    score, noise = rng.normal(size=120), rng.normal(size=120)
    human = np.where(np.arange(120) % 3 == 0, score + noise, NAN)
    plain = estimate(human=human, score=score, cluster=range(120))
    scaled = estimate(human=human, score=1000 * score - 7, cluster=range(120))
    assert scaled.value[0] == pytest.approx(plain.value[0])
    assert scaled.weight[0] == pytest.approx(plain.weight[0])
    assert 0.5 < plain.weight[0] <= 1


def test_useless_and_reversed_evaluators_change_nothing():
    rng = np.random.default_rng(3)
    human = np.where(np.arange(90) % 2 == 0, rng.normal(size=90), NAN)
    for score in (np.zeros(90), -np.nan_to_num(human)):
        means = estimate(human=human, score=score, cluster=range(90))
        assert means.weight[0] == 0
        assert means.value[0] == pytest.approx(means.human[0])
        assert means.effective[0] == pytest.approx(means.n_judged[0])


def test_difference_of_systems_uses_the_joint_covariance():
    """Both systems have the same items: their difference varies less than two independent means."""
    rng = np.random.default_rng(4)
    item = np.tile(np.arange(60), 2)
    rating = rng.normal(size=60)[item] + 0.1 * rng.normal(size=120)
    means = estimate_means(rating, rng.normal(size=120), item, np.repeat([0, 1], 60))
    difference = rating[:60] - rating[60:]
    contrast = np.array([1.0, -1.0])
    assert contrast @ means.covariance @ contrast == pytest.approx(difference.var(ddof=1) / 60)


def test_ranks_are_those_of_judgements_alone_if_the_evaluator_does_not_count():
    rng = np.random.default_rng(5)
    item, system = np.tile(np.arange(40), 3), np.repeat([0, 1, 2], 40)
    rating = rng.normal(size=120) + 0.3 * system
    ours = rank_by_assisted_mean(estimate_means(rating, np.zeros(120), item, system))
    usual = rank_by_mean(rating, item, system, bootstrap=Bootstrap())
    assert [(row.system, row.rank, row.rank_low, row.rank_high) for row in ours.systems] == [
        (row.system, row.rank, row.rank_low, row.rank_high) for row in usual.systems
    ]


def test_a_group_does_not_change_its_own_prediction():
    """An extreme rating changes slope and weight of other folds only."""
    rng = np.random.default_rng(6)
    score = rng.normal(size=60)
    human = np.where(np.arange(60) % 2 == 1, score + rng.normal(size=60), NAN)
    fold = deal_folds(np.isfinite(human), 0)
    changed = np.where(np.arange(60) == 7, 4.0, human)

    def predictions(ratings):
        return estimate_means(ratings, score, np.arange(60), np.zeros(60)).tables[:, 2, 0]

    before, after = predictions(human), predictions(changed)
    np.testing.assert_allclose(before[fold == fold[7]], after[fold == fold[7]])
    assert not np.allclose(before[fold != fold[7]], after[fold != fold[7]])


def test_without_outputs_and_without_judgements():
    assert rank_by_assisted_mean(estimate_means([], [], [], [])).systems == ()
    ranking = rank_by_assisted_mean(estimate_means([NAN] * 4, [1, 2, 3, 4], [0, 1, 0, 1], ["a", "a", "b", "b"]))
    assert [row.estimate.note for row in ranking.systems] == ["no judgement of this system"] * 2


def test_missing_score_is_refused():
    with pytest.raises(ColumnError, match="every output needs a score"):
        estimate(score=[*SCORE[:-1], NAN])


@pytest.mark.parametrize(("correlation", "size"), [(0.0, 1), (0.6, 1), (0.6, 9)])
@pytest.mark.parametrize("target", ["items-like-these", "these-items"])
def test_coverage_and_width(correlation, size, target):
    """400 campaigns of 4 systems (1,600 intervals)."""
    rng = np.random.default_rng(7)
    n, total, systems = (30, 120, 4) if size == 1 else (108, 270, 4)
    group = np.arange(total) // size
    hits, widths = [], []
    for seed in range(400):

        def draw(group=group):
            shared = rng.normal(size=(systems, group[-1] + 1))[:, group] if size > 1 else 0.0
            return np.sqrt(0.3 if size > 1 else 0) * shared + np.sqrt(0.7 if size > 1 else 1) * rng.normal(
                size=(systems, total)
            )

        score = draw()
        rating = correlation * score + np.sqrt(1 - correlation**2) * draw()
        is_judged = rng.permuted(np.tile(np.arange(total) < n, (systems, 1)), axis=1)
        means = estimate_means(
            np.where(is_judged, rating, NAN).ravel(), score.ravel(), np.tile(group, systems),
            np.repeat(np.arange(systems), total), options=AssistedOptions(target=target), seed=seed,
        )  # fmt: skip
        truth = rating.mean(axis=1) if target == "these-items" else 0.0
        half = student.ppf(0.975, means.n_groups - 1) * np.sqrt(means.variance)
        hits.append(np.abs(means.value - truth) <= half)
        widths.append([np.sqrt(means.variance).mean(), np.sqrt(means.human_variance).mean()])
    # Outputs drawn one by one from groups of like ones vary less than the sandwich, which allows for drawn groups.
    is_cautious = target == "these-items" and size > 1
    assert 0.93 <= np.mean(hits) <= (1.0 if is_cautious else 0.97)
    assisted, human = np.mean(widths, axis=0)
    assert assisted <= 1.03 * human
    if correlation:
        assert assisted < 0.97 * human
