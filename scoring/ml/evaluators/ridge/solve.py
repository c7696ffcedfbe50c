"""Ridge regression with the penalty chosen by leaving out groups, for ratings and for comparisons. numpy and scipy.

Explained in docs/explanation/evaluators/ridge.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.intp]
#: Penalties that are tried, as shares of the mean square of the features.
GRID = tuple(10.0**power for power in (-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1))
#: Parts of the groups that are left out in turn for comparisons.
FOLDS = 5
_RANK = 1e-10


@dataclass(frozen=True)
class Solution:
    """Weights (k,) and bias of a linear score, the penalty, and the error of each of the grid on groups left out."""

    weights: Floats
    bias: float
    penalty: float
    errors: dict[float, float]


@dataclass(frozen=True)
class Basis:
    """The rows X (n, k) in their own coordinates: X = left * sqrt(squares) @ right', columns with variance only."""

    rows: Floats
    left: Floats
    squares: Floats

    def to_weights(self, coordinates: Floats) -> Floats:
        """Return X' left coordinates: weights (k,) from coordinates (rank,) divided by the squares."""
        return np.asarray(self.rows.T @ (self.left @ coordinates))


def decompose(rows: Floats) -> Basis:
    """Return the `rows` (n, k) in their own coordinates, by the smaller of the two products."""
    n, k = rows.shape
    if n <= k:
        squares, left = np.linalg.eigh(rows @ rows.T)
        kept = squares > squares[-1] * _RANK
        return Basis(rows, left[:, kept], squares[kept])
    squares, right = np.linalg.eigh(rows.T @ rows)
    kept = squares > squares[-1] * _RANK
    return Basis(rows, rows @ right[:, kept] / np.sqrt(squares[kept]), squares[kept])


def fit_ratings(features: Floats, ratings: Floats, groups: Sequence[str], grid: Sequence[float] = GRID) -> Solution:
    """Return the weights that minimise |X w + b - ratings|^2 + penalty * mean(|x|^2) * |w|^2.

    `features` (n, k), `ratings` (n,), `groups` (n,). The penalty of the `grid` with the least squared error
    on groups left out is taken. The errors follow from one decomposition: with H the matrix that maps ratings to fitted
    values, a group g left out has the error (I - H_gg)^-1 (ratings_g - fitted_g).
    """
    mean, level = features.mean(axis=0), float(ratings.mean())
    basis = decompose(features - mean)
    targets = basis.left.T @ (ratings - level)
    unit = float((basis.rows**2).sum(axis=1).mean()) or 1.0
    members = [np.flatnonzero(codes) for codes in _split(groups)]
    errors = {}
    for penalty in grid:
        kept = basis.squares / (basis.squares + penalty * unit)
        rest = ratings - level - basis.left @ (kept * targets)
        total = 0.0
        for rows in members:
            own = basis.left[rows]
            block = (own * kept) @ own.T + 1.0 / len(ratings)
            total += float((np.linalg.lstsq(np.eye(len(rows)) - block, rest[rows], rcond=None)[0] ** 2).sum())
        errors[penalty] = total / len(ratings)
    best = min(errors, key=lambda penalty: (errors[penalty], -penalty))
    weights = basis.to_weights(targets / (basis.squares + best * unit))
    return Solution(weights, level - float(mean @ weights), best, errors)


def fit_comparisons(differences: Floats, wins: Floats, groups: Sequence[str], grid: Sequence[float] = GRID) -> Solution:
    """Return the weights that minimise the log loss of wins predicted from differences of features, plus
    penalty * mean(|d|^2) * |w|^2 / 8.

    `differences` (n, k) of the features of both outputs, `wins` (n,) of the first: 1, 1/2 for a tie, 0. The penalty is
    the one with the least log loss on a fifth of the groups left out in turn. The bias is 0.
    """
    basis = decompose(differences)
    rows = basis.left * np.sqrt(basis.squares)
    unit = float((differences**2).sum(axis=1).mean()) or 1.0
    parts = _assign_folds(groups)
    errors = dict.fromkeys(grid if len(grid) > 1 else (), 0.0)
    for part in np.unique(parts):
        held = parts == part
        weights = np.zeros(rows.shape[1])
        # From the largest penalty on, each solution is near the previous one.
        for penalty in sorted(errors, reverse=True):
            weights = _descend(rows[~held], wins[~held], penalty * unit, weights, tolerance=1e-8)
            errors[penalty] += float(_log_losses(rows[held] @ weights, wins[held]).sum()) / len(wins)
    best = min(errors, key=lambda penalty: (errors[penalty], -penalty)) if errors else grid[0]
    found = _descend(rows, wins, best * unit, np.zeros(rows.shape[1]), tolerance=1e-14)
    return Solution(basis.to_weights(found / np.sqrt(basis.squares)), 0.0, best, errors)


def _descend(rows: Floats, wins: Floats, penalty: float, start: Floats, tolerance: float) -> Floats:
    """The minimum of a convex loss, in coordinates; `tolerance`: of its relative decrease."""

    def loss(weights: Floats) -> tuple[float, Floats]:
        z = rows @ weights
        slope = rows.T @ (_sigmoid(z) - wins) + penalty / 4 * weights
        return float(_log_losses(z, wins).sum() + penalty / 8 * weights @ weights), slope

    return np.asarray(
        minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-7, "ftol": tolerance}).x
    )


def _sigmoid(z: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(z / 2)))


def _log_losses(z: Floats, wins: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, z) - wins * z)


def _split(groups: Sequence[str]) -> list[npt.NDArray[np.bool_]]:
    names = np.asarray(groups)
    return [names == name for name in dict.fromkeys(groups)]


def _assign_folds(groups: Sequence[str]) -> Ints:
    """A fold per row, of whole groups in turn."""
    order = {name: number for number, name in enumerate(sorted(set(groups)))}
    return np.array([order[name] % FOLDS for name in groups], dtype=np.intp)
