"""Models of paired comparisons: worked numbers, SciPy's optimiser, statsmodels, choix, no ties."""

from __future__ import annotations

import choix
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.sparse import csr_array

from evalapp.stats.ranking.bradley_terry import (
    ELO,
    MODELS,
    Design,
    fit_counts,
    information_per_comparison,
    inverse_information,
    outcome_scores,
    probabilities,
    sandwich,
    sum_cluster_scores,
    sum_row_scores,
)  # fmt: skip

PAIRS = np.array([[0, 1], [0, 2], [1, 2]])
COUNTS = np.array([[12, 5, 3], [9, 4, 7], [6, 6, 8.0]])
DESIGN = Design.from_pairs(3, PAIRS[:, 0], PAIRS[:, 1])


@pytest.mark.parametrize(
    ("model", "theta", "tie"),
    [
        ("bradley-terry", [0.37966, -0.37966, 0], None),
        ("davidson", [0.51667, -0.51667, 0], 0.71083),
        ("rao-kupper", [0.40924, -0.39833, -0.01091], 1.73623),
    ],
)
def test_worked_numbers(model, theta, tie):
    fit = fit_counts(model, DESIGN, COUNTS)
    assert fit.converged[0]
    assert fit.theta[0] == pytest.approx(theta, abs=5e-6)
    if tie is not None:
        assert np.exp(fit.tie[0]) == pytest.approx(tie, abs=5e-6)


def test_standard_errors_of_the_worked_example():
    fit = fit_counts("bradley-terry", DESIGN, COUNTS)
    assert np.sqrt(np.diag(inverse_information(fit))) == pytest.approx([0.220, 0.220, 0.215], abs=5e-4)
    robust = ELO * np.sqrt(np.diag(sandwich(fit, sum_row_scores(fit, COUNTS))))
    assert robust == pytest.approx([32.8, 31.6, 32.8], abs=0.05)


def random_counts(seed=3, n=9):
    rng = np.random.default_rng(seed)
    one, two = np.triu_indices(n, 1)
    theta = rng.normal(size=n)
    chances = probabilities("davidson", theta[one] - theta[two], np.array(-0.3))
    return Design.from_pairs(n, one, two), rng.multinomial(25, chances).astype(float)


@pytest.mark.parametrize("model", MODELS)
def test_equal_to_a_general_optimiser(model):
    design, counts = random_counts()
    fit = fit_counts(model, design, counts)

    def tie_parameter(x):
        return np.exp(x) if model == "rao-kupper" else x

    def negative(beta):
        eta, tie = beta[design.first] - beta[design.second], tie_parameter(beta[-1])
        if model == "bradley-terry":
            p = 1 / (1 + np.exp(-eta))
            return -((counts[:, 0] + counts[:, 1] / 2) @ np.log(p) + (counts[:, 2] + counts[:, 1] / 2) @ np.log(1 - p))
        first, second = np.exp(beta[design.first]), np.exp(beta[design.second])
        if model == "davidson":
            parts = np.stack([first, np.exp(tie) * np.sqrt(first * second), second], axis=1)
            parts /= parts.sum(axis=1, keepdims=True)
        else:
            kappa = np.exp(tie)
            win, loss = first / (first + kappa * second), second / (second + kappa * first)
            parts = np.stack([win, 1 - win - loss, loss], axis=1)
        return -(counts * np.log(parts)).sum()

    found = minimize(negative, np.append(np.zeros(9), 0.5), method="BFGS", options={"gtol": 1e-6})
    assert fit.theta[0] == pytest.approx(found.x[:9] - found.x[:9].mean(), abs=1e-6)
    assert fit.log_likelihood[0] == pytest.approx(-found.fun, abs=1e-8)
    if model != "bradley-terry":
        assert fit.tie[0] == pytest.approx(tie_parameter(found.x[-1]), abs=1e-6)


def test_without_ties_all_three_equal_choix():
    design, counts = random_counts(seed=5)
    counts[:, 1] = 0
    wins = [
        pair
        for i, j, (w, _, v) in zip(design.first, design.second, counts, strict=True)
        for pair in [(i, j)] * int(w) + [(j, i)] * int(v)
    ]
    theirs = choix.opt_pairwise(9, wins, alpha=0, method="Newton-CG", tol=1e-10)
    for model in MODELS:
        assert fit_counts(model, design, counts).theta[0] == pytest.approx(theirs - theirs.mean(), abs=1e-6)


def test_covariates_and_clusters_equal_statsmodels_logit():
    rng = np.random.default_rng(8)
    n, systems = 400, 4
    a = rng.integers(systems, size=n)
    b = (a + rng.integers(1, systems, size=n)) % systems
    length, cluster = rng.normal(size=n), rng.integers(40, size=n)
    won = rng.random(n) < 1 / (1 + np.exp(-(0.4 * (b - a) + 0.3 + 0.5 * length)))
    columns = np.broadcast_to(np.arange(2), (n, 2))
    design = Design(systems, a, b, 2, columns, np.stack([np.ones(n), length], axis=1), np.zeros(6))
    counts = np.stack([won, np.zeros(n), ~won], axis=1).astype(float)
    fit = fit_counts("bradley-terry", design, counts)
    # Systems relative to the first one, side and length.
    signs = np.zeros((n, systems))
    signs[np.arange(n), a], signs[np.arange(n), b] = 1, -1
    matrix = np.column_stack([signs[:, 1:], np.ones(n), length])
    theirs = sm.Logit(won, matrix).fit(disp=0, method="newton", tol=1e-12)
    assert fit.theta[0, 1:] - fit.theta[0, 0] == pytest.approx(theirs.params[:3], abs=1e-6)
    assert fit.covariates[0] == pytest.approx(theirs.params[3:], abs=1e-6)
    by_rows = sandwich(fit, sum_row_scores(fit, counts))
    again = sm.Logit(won, matrix).fit(disp=0, method="newton", tol=1e-12, cov_type="HC0")
    assert np.sqrt(np.diag(by_rows))[4:] == pytest.approx(again.bse[3:], abs=1e-6)
    cells = csr_array((np.ones(n), (cluster, 3 * np.arange(n) + np.where(won, 0, 2))), shape=(40, 3 * n))
    by_cluster = sandwich(fit, sum_cluster_scores(fit, cells))
    grouped = sm.Logit(won, matrix).fit(
        disp=0, method="newton", tol=1e-12, cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    assert np.sqrt(np.diag(by_cluster) * 39 / 40)[4:] == pytest.approx(grouped.bse[3:], abs=1e-6)
    contrast = np.array([-1, 1, 0, 0, 0, 0])
    assert np.sqrt(contrast @ by_cluster @ contrast * 39 / 40) == pytest.approx(grouped.bse[0], abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_scores_are_derivatives_and_sum_to_zero(model):
    eta, tie, step = np.array([-2.0, 0.0, 0.7]), np.array(0.4), 1e-6
    by_eta, by_tie = outcome_scores(model, eta, tie)
    if model == "bradley-terry":
        ahead, behind = (1 / (1 + np.exp(-(eta + s))) for s in (step, -step))
        assert by_eta[:, 0] == pytest.approx((np.log(ahead) - np.log(behind)) / (2 * step), abs=1e-6)
        # A tie is the mean of a win and a loss.
        assert by_eta[:, 1] == pytest.approx(by_eta[:, [0, 2]].mean(axis=1))
        return
    for scores, moved in ((by_eta, (step, 0)), (by_tie, (0, step))):
        logs = [np.log(probabilities(model, eta + s * moved[0], tie + s * moved[1])) for s in (1, -1)]
        assert scores == pytest.approx((logs[0] - logs[1]) / (2 * step), abs=1e-6)
    chances = probabilities(model, eta, tie)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert (chances * by_eta).sum(axis=1) == pytest.approx(0, abs=1e-12)
    assert information_per_comparison(model, eta, tie) == pytest.approx((chances * by_eta**2).sum(axis=1))


def test_many_tables_at_once_equal_each_alone():
    design, counts = random_counts(seed=6)
    tables = np.stack([counts, counts[::-1], counts * 3])
    for model in MODELS:
        many = fit_counts(model, design, tables)
        for place, table in enumerate(tables):
            alone = fit_counts(model, design, table)
            assert many.theta[place] == pytest.approx(alone.theta[0], abs=1e-9)
            assert many.information is None


def test_missing_finite_estimate_is_reported():
    # 0 always beats 1; both always tie with 2: the better the ties fit, the better the wins fit.
    counts = np.array([[5, 0, 0], [0, 5, 0], [0, 5, 0.0]])
    assert not fit_counts("davidson", DESIGN, counts).converged[0]
    assert fit_counts("bradley-terry", DESIGN, counts).converged[0]


def test_prior_makes_an_infinite_rating_finite():
    design = Design.from_pairs(2, np.array([0]), np.array([1]), precision=0.25)
    fit = fit_counts("bradley-terry", design, np.array([[10, 0, 0.0]]))
    # Stationary: 10 (1 - p) = theta / 4 with eta = 2 theta.
    theta = fit.theta[0, 0]
    assert 10 / (1 + np.exp(2 * theta)) == pytest.approx(theta / 4, abs=1e-9)


def test_unidentifiable_effects_are_refused():
    design = Design(
        2, np.array([0]), np.array([1]), 1, np.zeros((1, 1), dtype=int), np.ones((1, 1)), np.zeros(3)
    )  # fmt: skip
    fit = fit_counts("bradley-terry", design, np.array([[6, 1, 3.0]]))
    with pytest.raises(np.linalg.LinAlgError, match="not identifiable"):
        inverse_information(fit)


def test_unknown_model_is_refused():
    with pytest.raises(ValueError, match="bradley-terry"):
        fit_counts("thurstone", DESIGN, COUNTS)
