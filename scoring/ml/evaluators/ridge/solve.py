"""Ridge regression with the penalty chosen by leaving out groups, for ratings and for comparisons. numpy and scipy.

Explained in docs/explanation/evaluators/ridge.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.optimize import minimize

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.intp]
#: Penalties that are tried, as shares of the mean square of the features.
GRID = tuple(10.0**power for power in (-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1))
#: Judged outputs or pairs of an aspect that are needed at least.
LEAST = 10
_RANK = 1e-10
#: Rows of groups left out at a time: bounds the memory of their coordinates.
_AT_ONCE = 4096


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
    product = rows @ rows.T if n <= k else rows.T @ rows
    # The driver by division is the fastest one for all eigenvectors.
    squares, vectors = eigh(product, driver="evd", overwrite_a=True, check_finite=False)
    start = int(np.searchsorted(squares, squares[-1] * _RANK, side="right"))
    squares, vectors = squares[start:], vectors[:, start:]
    return Basis(rows, vectors if n <= k else rows @ vectors / np.sqrt(squares), squares)


def fit_ratings(features: Floats, ratings: Floats, groups: Sequence[str], grid: Sequence[float] = GRID) -> Solution:
    """Return the weights that minimise |X w + b - ratings|^2 + penalty * mean(|x|^2) * |w|^2.

    `features` (n, k), `ratings` (n,), `groups` (n,). The penalty of the `grid` with the least squared error
    on groups left out is taken. The errors follow from one decomposition: with H the matrix that maps ratings to fitted
    values, a group g left out has the error (I - H_gg)^-1 (ratings_g - fitted_g).
    """
    mean, level = features.mean(axis=0), float(ratings.mean())
    basis = decompose(features - mean)
    targets = basis.left.T @ (ratings - level)
    unit = _mean_square(basis.rows)
    kept = basis.squares / (basis.squares + unit * np.asarray(grid)[:, None])
    rest = (ratings - level - (kept * targets) @ basis.left.T).T
    left_out = _leave_out(basis.left, kept, _split(groups), rest, 1.0 / len(ratings))
    errors = dict(zip(grid, (left_out**2).mean(axis=0).tolist(), strict=True))
    best = min(errors, key=lambda penalty: (errors[penalty], -penalty))
    weights = basis.to_weights(targets / (basis.squares + best * unit))
    return Solution(weights, level - float(mean @ weights), best, errors)


def fit_comparisons(differences: Floats, wins: Floats, groups: Sequence[str], grid: Sequence[float] = GRID) -> Solution:
    """Return the weights that minimise the log loss of wins predicted from differences of features, plus
    penalty * mean(|d|^2) * |w|^2 / 8.

    `differences` (n, k) of the features of both outputs, `wins` (n,) of the first: 1, 1/2 for a tie, 0; `groups` (n,).
    The penalty of the `grid` with the least log loss on groups left out is taken; the bias is 0. The log-odds of a
    group left out are those after one Newton step from the solution on everything. Its matrix of second derivatives is
    taken with the mean curvature of all rows, which makes it diagonal in the coordinates of the rows, so that nothing
    is fitted again.
    """
    basis = decompose(differences)
    unit = _mean_square(differences)
    members = _split(groups)
    found = np.zeros(len(basis.squares))
    solutions, errors = {}, {}
    # From the largest penalty on, each solution is near the previous one.
    for penalty in sorted(grid, reverse=True):
        solutions[penalty] = found = _descend(basis, wins, penalty * unit, found)
        odds = basis.left @ (np.sqrt(basis.squares) * found)
        chances = _sigmoid(odds)
        rest, curvature = chances - wins, max(float((chances * (1.0 - chances)).mean()), 1e-6)
        kept = basis.squares / (basis.squares + penalty * unit / (4.0 * curvature))
        left_out = odds + (_leave_out(basis.left, kept[None], members, rest[:, None])[:, 0] - rest) / curvature
        errors[penalty] = float(_log_losses(left_out, wins).mean())
    best = min(errors, key=lambda penalty: (errors[penalty], -penalty))
    return Solution(basis.to_weights(solutions[best] / np.sqrt(basis.squares)), 0.0, best, errors)


def _mean_square(rows: Floats) -> float:
    """The mean squared length of the rows, 1 if all are 0."""
    return float(np.vdot(rows, rows)) / len(rows) or 1.0


def _leave_out(left: Floats, kept: Floats, members: Sequence[Ints], rest: Floats, constant: float = 0.0) -> Floats:
    """(I - H_gg)^-1 rest_g for each group g of rows and each penalty, H = left * kept @ left' + constant. `kept`
    (penalties, rank); `members` (groups, size) has the rows of groups of equal size in an array; `rest` (n, penalties).
    """
    result = np.empty_like(rest)
    for rows in members:
        own = left[rows]
        scaled, unit = np.empty_like(own), np.eye(rows.shape[1]) - constant
        for number, share in enumerate(kept):
            block = np.multiply(own, share, out=scaled) @ own.swapaxes(1, 2)
            # The pseudoinverse, because without a penalty a group may be fitted exactly.
            inverse = np.linalg.pinv(unit - block, hermitian=True)
            result[rows, number] = (inverse @ rest[rows, number, None])[:, :, 0]
    return result


def _descend(basis: Basis, wins: Floats, penalty: float, start: Floats) -> Floats:
    """The minimum of the loss of comparisons, in coordinates. They are scaled by the greatest second derivatives, after
    which about ten steps suffice."""
    root = np.sqrt(basis.squares)
    scale = np.sqrt((basis.squares + penalty) / 4.0)
    factor, pull = root / scale, penalty / 4.0 / scale**2

    def loss(scaled: Floats) -> tuple[float, Floats]:
        odds = basis.left @ (factor * scaled)
        slope = factor * (basis.left.T @ (_sigmoid(odds) - wins)) + pull * scaled
        return float(_log_losses(odds, wins).sum() + scaled @ (pull * scaled) / 2.0), slope

    options = {"maxiter": 500, "gtol": 1e-7, "ftol": 1e-13}
    return np.asarray(minimize(loss, start * scale, jac=True, method="L-BFGS-B", options=options).x / scale)


def _sigmoid(z: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(z / 2)))


def _log_losses(z: Floats, wins: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, z) - wins * z)


def _split(groups: Sequence[str]) -> list[Ints]:
    """The rows of each group: arrays (groups, size) of groups of equal size, of bounded length."""
    numbers = np.unique(np.asarray(groups), return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    of_size: dict[int, list[Ints]] = {}
    for rows in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        of_size.setdefault(len(rows), []).append(rows)
    return [
        np.stack(alike[start : start + max(1, _AT_ONCE // size)])
        for size, alike in of_size.items()
        for start in range(0, len(alike), max(1, _AT_ONCE // size))
    ]
