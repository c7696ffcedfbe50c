"""Models of paired comparisons with ties (Bradley-Terry, Davidson, Rao-Kupper): likelihood, Newton's method on counts,
sandwich covariance.

Columns of judgements, intervals and ranks are in `comparisons`. Explained in
docs/explanation/statistics/comparisons.md#models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray

Model: TypeAlias = Literal["bradley-terry", "davidson", "rao-kupper"]
MODELS: tuple[Model, ...] = ("bradley-terry", "davidson", "rao-kupper")

#: Rating = 1000 + 400 / ln 10 theta, so that 400 points are odds of 10 to 1.
ELO_ZERO, ELO = 1000.0, 400.0 / math.log(10)

# Value of ln nu for nu = 0 and of ln kappa for kappa = 1: without observed ties the model gives ties no probability.
_NO_TIES = {"davidson": -700.0, "rao-kupper": 1e-100}
# A tie parameter of e^12, or a covariate of that many log odds, means perfect separation: there is no finite estimate.
_ENDLESS = 12.0
_STEP_CAP, _STEP_DONE, _ITERATIONS, _HALVINGS = 3.0, 1e-10, 60, 40
# Cells of a block of Hessian matrices: 32 MB.
_BLOCK_CELLS = 1 << 22
# Cells of cluster scores summed at once: 128 MB.
_DENSE_CELLS = 1 << 24


@dataclass(frozen=True)
class Design:
    """Distinct kinds of comparison: kind u shows `first[u]` and `second[u]`, and

        eta_u = theta[first] - theta[second] + sum_j values[u, j] beta[columns[u, j]]

    `columns`, `values` (u, m) name the covariates of a kind, numbered from 0 to `n_covariates`. `precision`
    (n_systems + n_covariates,) holds the precisions of independent normal priors around 0, the same for all systems;
    0 is no prior."""

    n_systems: int
    first: IntArray
    second: IntArray
    n_covariates: int
    columns: IntArray
    values: FloatArray
    precision: FloatArray

    @classmethod
    def from_pairs(cls, n_systems: int, first: IntArray, second: IntArray, precision: float = 0.0) -> Design:
        """Return a design without covariates."""
        none = np.zeros((len(first), 0))
        return cls(n_systems, first, second, 0, none.astype(np.int64), none, np.full(n_systems, precision))

    @property
    def n_linear(self) -> int:
        """Number of parameters of eta: systems and covariates."""
        return self.n_systems + self.n_covariates

    @cached_property
    def entries(self) -> tuple[IntArray, FloatArray]:
        """Columns and values of each kind's row of the design matrix, (u, 2 + m)."""
        sides = np.stack([self.first, self.second], axis=1)
        signs = np.broadcast_to([1.0, -1.0], sides.shape)
        return (
            np.concatenate([sides, self.columns + self.n_systems], axis=1),
            np.concatenate([signs, self.values], axis=1),
        )

    @cached_property
    def matrix(self) -> csr_array:
        """The design matrix (u, n_linear)."""
        columns, values = self.entries
        starts = np.arange(len(columns) + 1) * columns.shape[1]
        return csr_array((values.ravel(), columns.ravel(), starts), shape=(len(columns), self.n_linear))

    @cached_property
    def products(self) -> csr_array:
        """(n_linear^2, u): times weights (u,) it gives the sum of weight x x' over the kinds, flattened."""
        columns, values = self.entries
        places = (columns[:, :, None] * self.n_linear + columns[:, None, :]).reshape(len(columns), -1)
        weights = (values[:, :, None] * values[:, None, :]).reshape(len(columns), -1)
        starts = np.arange(len(columns) + 1) * places.shape[1]
        rows = csr_array((weights.ravel(), places.ravel(), starts), shape=(len(columns), self.n_linear**2))
        return rows.T.tocsr()

    @property
    def has_prior(self) -> bool:
        """Whether the systems have a prior, which also fixes the zero of the scale."""
        return bool((self.precision[: self.n_systems] > 0).any())


@dataclass(frozen=True)
class Fit:
    """Maximum likelihood (or posterior mode) for many sets of counts on the same design; sets along the first axis.

    `theta` (r, n_systems) sums to 0; `covariates` (r, n_covariates); `tie` (r,) is ln nu or ln kappa, nan without;
    `converged` (r,) is False where there is no finite estimate. `information` (r, p, p) is the negative Hessian
    including the prior, parameters in the order theta, covariates, tie; stored only for a single set."""

    model: Model
    design: Design
    theta: FloatArray
    covariates: FloatArray
    tie: FloatArray
    log_likelihood: FloatArray
    converged: BoolArray
    iterations: int
    information: FloatArray | None = field(default=None, repr=False)

    @property
    def eta(self) -> FloatArray:
        """Linear predictors of the kinds, (r, u)."""
        beta = np.concatenate([self.theta, self.covariates], axis=1)
        return np.ascontiguousarray((self.design.matrix @ beta.T).T)


def fit_counts(model: Model, design: Design, counts: FloatArray, start: Fit | None = None) -> Fit:
    """Fit `counts` (u, 3), or (r, u, 3) at once: wins, ties and losses of the first system of each kind.

    bradley-terry: P(win) = s(eta), s = logistic function; a tie is half a win and half a loss. davidson: win : tie :
    loss = e^(eta/2) : nu : e^(-eta/2) (Davidson 1970, with pi = e^theta). rao-kupper: P(win) = s(eta - ln kappa),
    P(loss) = s(-eta - ln kappa), kappa >= 1 (Rao and Kupper 1967). All three are concave in theta and ln nu or ln
    kappa; Newton's method with step halving reaches the maximum. Without observed ties nu = 0 and kappa = 1. The
    design must link all systems, or have a prior."""
    if model not in MODELS:
        raise ValueError(f"model is one of {', '.join(MODELS)}, not '{model}'")
    tables = np.asarray(counts, dtype=np.float64)
    single = tables.ndim == 2
    tables = tables[None] if single else tables
    begin = _start(model, design, tables, start)
    size = max(1, _BLOCK_CELLS // begin.shape[1] ** 2)
    blocks = [
        _newton(model, design, tables[at : at + size], begin[at : at + size]) for at in range(0, len(tables), size)
    ]
    beta, value, converged = (np.concatenate([block[k] for block in blocks]) for k in range(3))
    n, p = design.n_systems, design.n_linear
    tie = beta[:, p] if model != "bradley-terry" else np.full(len(beta), np.nan)
    converged &= (np.abs(beta[:, n:p]) < _ENDLESS).all(axis=1)
    if model != "bradley-terry":
        converged &= tie < _ENDLESS
    information = None
    if single:
        information = _derivatives(model, design, tables, beta)[1]
    iterations = max(block[3] for block in blocks)
    return Fit(model, design, beta[:, :n], beta[:, n:p], tie, value, converged, iterations, information)


def probabilities(model: Model, eta: FloatArray, tie: FloatArray) -> FloatArray:
    """Return the probabilities (..., 3) of a win, a tie and a loss at `eta`; `tie` broadcasts against it.
    Bradley-Terry has no ties."""
    if model == "bradley-terry":
        return np.stack([expit(eta), np.zeros_like(eta), expit(-eta)], axis=-1)
    if model == "davidson":
        top = np.maximum(np.abs(eta) / 2, tie)
        parts = np.stack([np.exp(eta / 2 - top), np.exp(tie - top), np.exp(-eta / 2 - top)], axis=-1)
        return np.asarray(parts / parts.sum(axis=-1, keepdims=True))
    win, loss = expit(eta - tie), expit(-eta - tie)
    return np.stack([win, np.expm1(2 * tie) * win * loss, loss], axis=-1)


def outcome_scores(model: Model, eta: FloatArray, tie: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return derivatives of the log-likelihood of a win, a tie and a loss by eta and by the tie parameter, each
    (..., 3)."""
    if model == "bradley-terry":
        p = expit(eta)
        by_eta = np.stack([1 - p, 0.5 - p, -p], axis=-1)
        return by_eta, np.zeros_like(by_eta)
    if model == "davidson":
        chances = probabilities(model, eta, tie)
        mean = (chances[..., 0] - chances[..., 2]) / 2
        by_eta = np.stack([0.5 - mean, -mean, -0.5 - mean], axis=-1)
        return by_eta, np.array([0.0, 1.0, 0.0]) - chances[..., 1:2]
    one, two = expit(tie - eta), expit(tie + eta)
    by_eta = np.stack([one, one - two, -two], axis=-1)
    return by_eta, np.stack([-one, -2 / np.expm1(-2 * tie) - one - two, -two], axis=-1)


def information_per_comparison(model: Model, eta: FloatArray, tie: FloatArray) -> FloatArray:
    """Return the expected Fisher information of a single comparison about eta, with the tie parameter known."""
    by_eta = outcome_scores(model, eta, tie)[0]
    return np.asarray((probabilities(model, eta, tie) * by_eta**2).sum(axis=-1))


def inverse_information(fit: Fit) -> FloatArray:
    """Return the (p, p) inverse of the information of a single fit, on the subspace where the theta sum to 0.

    Raises `numpy.linalg.LinAlgError` if parameters are not identifiable (a covariate that equals a system)."""
    if fit.information is None:
        raise ValueError("the information is kept for a single set of counts")
    matrix, n = fit.information[0].copy(), fit.design.n_systems
    no_ties = fit.model != "bradley-terry" and fit.tie[0] in _NO_TIES.values()
    matrix[:n, :n] += np.trace(matrix[:n, :n]) / n**2 if not fit.design.has_prior else 0.0
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values = np.linalg.eigvalsh(matrix / np.outer(scale, scale))
    if values[0] < 1e-9:
        raise np.linalg.LinAlgError("the effects are not identifiable")
    inverse = np.linalg.inv(matrix)
    if not fit.design.has_prior:
        inverse = _centred(_centred(inverse, n).T, n)
    if no_ties:
        inverse[-1] = inverse[:, -1] = 0.0
    return inverse


def sandwich(fit: Fit, meat: FloatArray) -> FloatArray:
    """Return H^-1 G H^-1 with G = `meat` (p, p), the sum of outer products of scores over independent units."""
    inverse = inverse_information(fit)
    return np.asarray(inverse @ meat @ inverse)


def sum_row_scores(fit: Fit, squares: FloatArray) -> FloatArray:
    """Return G for independent judgements: `squares` (u, 3) is the sum of squared weights per kind and outcome."""
    by_eta, by_tie = outcome_scores(fit.model, fit.eta[0], fit.tie[0])
    p = fit.design.n_linear
    linear = (fit.design.products @ (squares * by_eta**2).sum(axis=1)).reshape(p, p)
    if fit.model == "bradley-terry":
        return np.asarray(linear)
    crossed = fit.design.matrix.T @ (squares * by_eta * by_tie).sum(axis=1)
    corner = (squares * by_tie**2).sum()
    return np.block([[linear, crossed[:, None]], [crossed[None, :], corner]])


def sum_cluster_scores(fit: Fit, cells: csr_array) -> FloatArray:
    """Return G for independent clusters: `cells` (clusters, 3 u) sums the weights per kind and outcome; scaled by C
    / (C - 1)."""
    by_eta, by_tie = (scores.ravel() for scores in outcome_scores(fit.model, fit.eta[0], fit.tie[0]))
    p, ties = fit.design.n_linear, fit.model != "bradley-terry"
    columns, values = fit.design.entries
    meat, size = np.zeros((p + ties, p + ties)), max(1, _DENSE_CELLS // (p + 1))
    for begin in range(0, cells.shape[0], size):
        block = cells[begin : begin + size].tocoo()
        kind, gained, width = block.col // 3, block.data * by_eta[block.col], p + ties
        scores = np.zeros(block.shape[0] * width)
        for column, value in zip(columns.T, values.T, strict=True):
            scores += np.bincount(block.row * width + column[kind], gained * value[kind], minlength=len(scores))
        scores = scores.reshape(-1, width)
        if ties:
            scores[:, p] = np.bincount(block.row, block.data * by_tie[block.col], minlength=len(scores))
        meat += scores.T @ scores
    n = cells.shape[0]
    return np.asarray(meat * n / max(n - 1, 1))


def _centred(matrix: FloatArray, n: int) -> FloatArray:
    """Return the first n rows minus their mean."""
    result = matrix.copy()
    result[:n] -= result[:n].mean(axis=0)
    return result


def _start(model: Model, design: Design, counts: FloatArray, start: Fit | None) -> FloatArray:
    p = design.n_linear
    beta = np.zeros((len(counts), p + (model != "bradley-terry")))
    if start is not None:
        beta[:, :p] = np.concatenate([start.theta, start.covariates], axis=1)
    if model == "bradley-terry":
        return beta
    ties = counts[:, :, 1].sum(axis=1)
    share = np.clip(ties / np.maximum(counts.sum(axis=(1, 2)), 1e-300), 1e-6, 0.999)
    odds = 2 * share / (1 - share) if model == "davidson" else (1 + share) / (1 - share)
    beta[:, p] = np.where(ties > 0, np.log(odds), _NO_TIES[model])
    if start is not None:
        beta[:, p] = np.where((ties > 0) & (start.tie > 1e-3 - 50.0 * (model == "davidson")), start.tie, beta[:, p])
    return beta


def _newton(
    model: Model, design: Design, counts: FloatArray, beta: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray, int]:
    """Return parameters, log-likelihood and convergence of each table of counts, and the iterations of the slowest."""
    value = _objective(model, design, counts, beta)
    converged = np.zeros(len(beta), dtype=np.bool_)
    open_rows, iterations = np.arange(len(beta)), 0
    while len(open_rows) and iterations < _ITERATIONS:
        iterations += 1
        tables, here, before = counts[open_rows], beta[open_rows], value[open_rows]
        step = _step(model, design, tables, here)
        length = np.abs(step).max(axis=1)
        step *= np.minimum(1.0, _STEP_CAP / np.maximum(length, 1e-300))[:, None]
        if model == "rao-kupper":
            # ln kappa stays positive: at most three quarters of the step towards 0.
            towards = np.where(step[:, -1] < 0, -0.75 * here[:, -1] / np.minimum(step[:, -1], -1e-300), 1.0)
            step *= np.minimum(1.0, towards)[:, None]
        after, then = here + step, _objective(model, design, tables, here + step)
        for _ in range(_HALVINGS):
            worse = ~(then >= before - 1e-13 * np.abs(before))
            if not worse.any():
                break
            step[worse] /= 2
            after[worse] = here[worse] + step[worse]
            then[worse] = _objective(model, design, tables[worse], after[worse])
        beta[open_rows], value[open_rows] = after, then
        done = length < _STEP_DONE * (1 + np.abs(after[:, : design.n_linear]).max(axis=1))
        converged[open_rows[done]] = True
        open_rows = open_rows[~done]
    return beta, value, converged, iterations


def _objective(model: Model, design: Design, counts: FloatArray, beta: FloatArray) -> FloatArray:
    """Return the log-likelihood including the prior, (r,)."""
    p = design.n_linear
    eta = (design.matrix @ beta[:, :p].T).T
    prior = 0.5 * (beta[:, :p] ** 2) @ design.precision
    win, tie_count, loss = counts[..., 0], counts[..., 1], counts[..., 2]
    if model == "bradley-terry":
        result = (win + tie_count / 2) * _log_expit(eta) + (loss + tie_count / 2) * _log_expit(-eta)
    elif model == "davidson":
        tie = beta[:, p:]
        top = np.maximum(np.abs(eta) / 2, tie)
        total = top + np.log(np.exp(eta / 2 - top) + np.exp(tie - top) + np.exp(-eta / 2 - top))
        result = (win - loss) * eta / 2 + tie_count * tie - counts.sum(axis=2) * total
    else:
        tie = beta[:, p:]
        apart = np.log(np.expm1(np.minimum(2 * tie, 700.0)))
        result = (win + tie_count) * _log_expit(eta - tie) + (loss + tie_count) * _log_expit(-eta - tie)
        result = result + tie_count * apart
    return np.asarray(result.sum(axis=1) - prior)


def _log_expit(x: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))))


def _step(model: Model, design: Design, counts: FloatArray, beta: FloatArray) -> FloatArray:
    gradient, matrix = _derivatives(model, design, counts, beta)
    n = design.n_systems
    scale = np.einsum("rii->r", matrix[:, :n, :n]) / n
    # The zero of the scale is free, or fixed by a prior equal for all systems; this keeps the sum of theta at 0.
    matrix[:, :n, :n] += (scale / n)[:, None, None]
    diagonal = np.arange(matrix.shape[1])
    matrix[:, diagonal, diagonal] += 1e-13 * np.maximum(scale, 1e-300)[:, None]
    try:
        return np.asarray(np.linalg.solve(matrix, gradient[..., None])[..., 0])
    except np.linalg.LinAlgError:
        # Regularises a likelihood that is flat in some direction, as on the way to an infinite estimate.
        return np.asarray((np.linalg.pinv(matrix, rcond=1e-12, hermitian=True) @ gradient[..., None])[..., 0])


def _derivatives(model: Model, design: Design, counts: FloatArray, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradient (r, parameters) and the negative Hessian (r, parameters, parameters), including the prior."""
    p = design.n_linear
    eta = (design.matrix @ beta[:, :p].T).T
    n = counts.sum(axis=2)
    gradient, matrix = np.zeros_like(beta), np.zeros((*beta.shape, beta.shape[1]))
    tie = beta[:, p:] if model != "bradley-terry" else np.zeros((len(beta), 1))
    by_eta, by_tie = outcome_scores(model, eta, tie)
    crossed = corner = np.zeros_like(eta)
    if model == "bradley-terry":
        curve = n * expit(eta) * expit(-eta)
    elif model == "davidson":
        chances = probabilities(model, eta, tie)
        apart, even = chances[..., 0] - chances[..., 2], chances[..., 1]
        curve, crossed, corner = n * (1 - even - apart**2) / 4, -n * apart * even / 2, n * even * (1 - even)
    else:
        one = (counts[..., 0] + counts[..., 1]) * expit(eta - tie) * expit(tie - eta)
        two = (counts[..., 2] + counts[..., 1]) * expit(-eta - tie) * expit(tie + eta)
        bend = 1 / np.sinh(np.minimum(tie, 300.0)) ** 2
        curve, crossed, corner = one + two, two - one, one + two + counts[..., 1] * bend
    gradient[:, :p] = (design.matrix.T @ (counts * by_eta).sum(axis=2).T).T - design.precision * beta[:, :p]
    matrix[:, :p, :p] = (design.products @ curve.T).T.reshape(len(beta), p, p)
    matrix[:, np.arange(p), np.arange(p)] += design.precision
    if model != "bradley-terry":
        seen = counts[..., 1].sum(axis=1) > 0
        gradient[:, p] = np.where(seen, (counts * by_tie).sum(axis=(1, 2)), 0.0)
        side = (design.matrix.T @ crossed.T).T * seen[:, None]
        matrix[:, :p, p], matrix[:, p, :p] = side, side
        matrix[:, p, p] = np.where(seen, corner.sum(axis=1), 1.0)
    return gradient, matrix
