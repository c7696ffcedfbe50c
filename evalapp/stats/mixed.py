"""Additive models of ratings with crossed random effects: restricted likelihood, effects with their uncertainty.

y = fixed level + one random effect per factor + residual. What the factors are, and what is made of the variances, is
in `components` and `calibration`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array, diags_array, hstack

from evalapp.stats.coding import FloatArray, IntArray

# Ratios of variances below this are zero.
_ZERO = 1e-8
# The rise of the deviance at the end of a 95 % interval of one parameter.
_RISE = 3.841458820694124


@dataclass(frozen=True, slots=True)
class Fitted:
    """Variances of the random factors, in the order given, and of the residual; `deviance` is -2 log restricted
    likelihood up to a constant that depends on the data only."""

    variances: FloatArray
    residual: float
    deviance: float


@dataclass(frozen=True, slots=True)
class Effects:
    """Estimates and standard deviations: levels of the fixed factor, then of each random factor."""

    fixed: FloatArray
    fixed_sd: FloatArray
    random: tuple[FloatArray, ...]
    random_sd: tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True)
class _Solved:
    """y'Py, log|M|, and the equations left when the largest factor is eliminated: scale of the unknowns, Cholesky
    factor L, L^-1 of the right side; of the eliminated factor its diagonal, right side, and block with the others."""

    square: float
    logdet: float
    scale: FloatArray
    lower: FloatArray
    half: FloatArray
    inner: FloatArray
    own: FloatArray
    tied: csr_array

    def inverse(self) -> tuple[FloatArray, FloatArray]:
        """Inverse of the reduced matrix, and the solution."""
        root = solve_triangular(self.lower, np.eye(len(self.scale)), lower=True, check_finite=False)
        return root.T @ root, root.T @ self.half


class MixedModel:
    """y (n,), codes of the one fixed factor (all levels occur), codes of the random factors.

    With gamma the ratios of variances to the residual's and Lambda = diag(sqrt(gamma)), all follows from

    M = [[X'X, X'Z Lambda], [Lambda Z'X, Lambda Z'Z Lambda + I]]:  log|V| + log|X'V^-1 X| = log|M| and
    y'Py = y'y - r'M^-1 r (Henderson's equations). The factor with most levels is eliminated: its block is diagonal.
    """

    def __init__(self, y: FloatArray, fixed: IntArray, random: Sequence[IntArray]) -> None:
        n = len(y)
        self.n, self.n_fixed = n, int(fixed.max(initial=-1)) + 1
        self.levels = [int(codes.max(initial=-1)) + 1 for codes in random]
        # Centred, so that the squares of large values do not cancel; the level is added to the fixed effects again.
        self._level = float(y.mean()) if n else 0.0
        y = y - self._level
        self.big = int(np.argmax(self.levels)) if random else -1
        ones, rows = np.ones(n), np.arange(n)
        blocks = [csr_array((ones, (rows, fixed)), shape=(n, self.n_fixed))]
        self._place = [-1] * len(random)
        at = self.n_fixed
        for place, codes in enumerate(random):
            if place != self.big:
                blocks.append(csr_array((ones, (rows, codes)), shape=(n, self.levels[place])))
                self._place[place] = at
                at += self.levels[place]
        dense = csr_array(hstack(blocks))
        self._cross_dense = (dense.T @ dense).toarray()
        self._right_dense = np.asarray(dense.T @ y)
        self._square = float(y @ y)
        if random:
            big = csr_array((ones, (rows, random[self.big])), shape=(n, self.levels[self.big]))
            self._sizes = np.bincount(random[self.big], minlength=self.levels[self.big]).astype(np.float64)
            self._cross_big = csr_array(big.T @ dense)
            self._right_big = np.asarray(big.T @ y)

    def fit(self, start: FloatArray | None = None, *, precise: bool = False) -> Fitted:
        """The variances of largest restricted likelihood, none below 0. `start`: ratios to the residual's variance
        that are near, as those of nearly the same ratings; then a few steps are enough. `precise`: to about twelve
        digits, so that another order of the rows gives the same."""
        from scipy.optimize import minimize

        if self.n <= self.n_fixed:
            return Fitted(np.zeros(len(self.levels)), 0.0, math.nan)
        if not self.levels:
            return self._fitted(np.empty(0))

        def profiled(logs: FloatArray) -> tuple[float, FloatArray]:
            solved = self._solve(np.exp(logs))
            slope = self._slope(solved, solved.square / (self.n - self.n_fixed))
            return self._profiled(solved), slope

        bounds = [(math.log(_ZERO) - 1.0, math.log(1e8))] * len(self.levels)
        begin, options = np.full(len(self.levels), math.log(0.3)), {"maxiter": 300, "ftol": 1e-14, "gtol": 1e-7}
        if start is not None:
            begin, options = np.log(np.maximum(start, 1e-3)), {"maxiter": 100, "ftol": 1e-9, "gtol": 1e-3}
        found = minimize(profiled, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        logs = self._polished(found.x, lambda at: profiled(at)[1]) if precise else found.x
        gamma = np.exp(logs)
        return self._fitted(np.where(gamma < 10 * _ZERO, 0.0, gamma))

    @staticmethod
    def _polished(logs: FloatArray, slope: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Newton's steps from near the optimum, with one matrix of second derivatives, for what is not at 0."""
        inside = np.flatnonzero((logs > math.log(10 * _ZERO)) & (logs < math.log(1e7)))
        step, base = 1e-5, slope(logs)[inside]
        columns = []
        for place in inside:
            moved = logs.copy()
            moved[place] += step
            columns.append((slope(moved)[inside] - base) / step)
        if not columns:
            return logs
        curvature = np.array(columns).T
        for _ in range(2):
            change = np.linalg.lstsq(curvature, -base, rcond=None)[0]
            if not np.abs(change).max() < 0.1:
                return logs
            logs = logs.copy()
            logs[inside] += change
            base = slope(logs)[inside]
        return logs

    def intervals(self, fitted: Fitted) -> list[tuple[float, float]]:
        """95 % intervals of the random variances and of the residual's, last.

        From the curvature of the deviance in the logarithms of the variances that are above 0. A variance of 0 has 0 as
        its lower end, and as its upper one where the deviance has risen by 3.84 with the others held.
        """
        values = np.append(fitted.variances, fitted.residual)
        if not fitted.residual > 0 or math.isnan(fitted.deviance):
            return [(math.nan, math.nan)] * len(values)
        inside = np.flatnonzero(values > _ZERO * fitted.residual)
        variance = np.diag(np.linalg.pinv(self._curvature(values, inside)))
        found = []
        for place, value in enumerate(values):
            at = np.flatnonzero(inside == place)
            if len(at) and variance[at[0]] > 0:
                factor = math.exp(min(1.959964 * math.sqrt(2.0 * variance[at[0]]), 50.0))
                found.append((float(value / factor), float(value * factor)))
            else:
                found.append((0.0, self._upper(values, place, fitted)))
        return found

    def effects(self, gamma: FloatArray, residual: float) -> Effects:
        """Best linear unbiased estimates (fixed) and predictions (random) at given variances, with the standard
        deviations of their errors."""
        roots = np.sqrt(gamma)
        solved = self._solve(gamma)
        scale = solved.scale
        inverse, solution = solved.inverse()
        dense, dense_sd = scale * solution, scale * np.sqrt(np.maximum(np.diag(inverse) * residual, 0.0))
        random, random_sd = [], []
        for place, start in enumerate(self._place):
            if start >= 0:
                random.append(dense[start : start + self.levels[place]])
                random_sd.append(dense_sd[start : start + self.levels[place]])
                continue
            # The eliminated factor, back from the others.
            values, spread = self._eliminated(solved, inverse, solution)
            random.append(roots[place] * values)
            random_sd.append(roots[place] * np.sqrt(spread * residual))
        fixed = slice(0, self.n_fixed)
        return Effects(dense[fixed] + self._level, dense_sd[fixed], tuple(random), tuple(random_sd))

    def _eliminated(self, solved: _Solved, inverse: FloatArray, solution: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The scaled effects of the eliminated factor, back from the others, and the diagonal of their inverse."""
        values = (solved.own - solved.tied @ solution) / solved.inner
        product = np.asarray(solved.tied @ inverse)
        along = np.asarray(solved.tied.multiply(product).sum(axis=1)).reshape(-1)
        return values, 1.0 / solved.inner + along / solved.inner**2

    def _slope(self, solved: _Solved, residual: float) -> FloatArray:
        """Derivative of the deviance in log gamma at a residual variance: q - tr(M^-1) - |u|^2 / residual of every
        factor, u its scaled effects (Z'Py = u / sqrt(gamma))."""
        inverse, solution = solved.inverse()
        diagonal = np.diag(inverse)
        slope = np.empty(len(self.levels))
        for place, (start, size) in enumerate(zip(self._place, self.levels, strict=True)):
            if start >= 0:
                effect, trace = solution[start : start + size], float(diagonal[start : start + size].sum())
            else:
                effect, spread = self._eliminated(solved, inverse, solution)
                trace = float(spread.sum())
            slope[place] = size - trace - float(effect @ effect) / max(residual, 1e-300)
        return slope

    def _solve(self, gamma: FloatArray) -> _Solved:
        scale = np.ones(len(self._right_dense))
        ridge = np.zeros(len(scale))
        for place, start in enumerate(self._place):
            if start >= 0:
                scale[start : start + self.levels[place]] = math.sqrt(gamma[place])
                ridge[start : start + self.levels[place]] = 1.0
        matrix = self._cross_dense * scale[:, None] * scale[None, :]
        matrix[np.diag_indices_from(matrix)] += ridge
        right, square, logdet = self._right_dense * scale, self._square, 0.0
        inner, own, tied = np.empty(0), np.empty(0), csr_array((0, len(scale)))
        if self.levels:
            ratio = float(gamma[self.big])
            inner = ratio * self._sizes + 1.0
            tied = csr_array(self._cross_big @ diags_array(math.sqrt(ratio) * scale))
            own = math.sqrt(ratio) * self._right_big
            matrix -= (tied.T @ (diags_array(1.0 / inner) @ tied)).toarray()
            right = right - np.asarray(tied.T @ (own / inner))
            square -= float(own @ (own / inner))
            logdet = float(np.log(inner).sum())
        lower = np.linalg.cholesky(matrix)
        half = solve_triangular(lower, right, lower=True, check_finite=False)
        logdet += 2.0 * float(np.log(np.diag(lower)).sum())
        return _Solved(max(square - float(half @ half), 0.0), logdet, scale, lower, half, inner, own, tied)

    def _profiled(self, solved: _Solved) -> float:
        freedom = self.n - self.n_fixed
        return freedom * math.log(max(solved.square, 1e-300) / freedom) + solved.logdet

    def _fitted(self, gamma: FloatArray) -> Fitted:
        solved = self._solve(gamma)
        residual = solved.square / (self.n - self.n_fixed)
        return Fitted(gamma * residual, residual, self._profiled(solved) + self.n - self.n_fixed)

    def _deviance(self, values: FloatArray) -> float:
        """At any variances, the residual's last."""
        residual = float(values[-1])
        solved = self._solve(values[:-1] / residual)
        return (self.n - self.n_fixed) * math.log(residual) + solved.logdet + solved.square / residual

    def _gradient(self, values: FloatArray) -> FloatArray:
        """Derivatives of the deviance in the logarithms of all variances."""
        residual = float(values[-1])
        solved = self._solve(values[:-1] / residual)
        slope = self._slope(solved, residual)
        return np.append(slope, self.n - self.n_fixed - solved.square / residual - slope.sum())

    def _curvature(self, values: FloatArray, inside: IntArray) -> FloatArray:
        """Second derivatives of the deviance in the logarithms of the variances inside."""
        step = 1e-3
        rows = []
        for place in inside:
            up, down = values.copy(), values.copy()
            up[place] *= math.exp(step)
            down[place] *= math.exp(-step)
            rows.append((self._gradient(up) - self._gradient(down))[inside] / (2 * step))
        found = np.array(rows)
        return np.asarray((found + found.T) / 2)

    def _upper(self, values: FloatArray, place: int, fitted: Fitted) -> float:
        """Where the deviance has risen by 3.84 as one variance grows, the others held."""
        base = self._deviance(values)

        def rise(value: float) -> float:
            moved = values.copy()
            moved[place] = value
            return self._deviance(moved) - base

        low, high = 0.0, fitted.residual * 1e-3
        while rise(high) < _RISE:
            low, high = high, high * 2.0
            if high > fitted.residual * 1e6:
                return math.inf
        for _ in range(40):
            middle = (low + high) / 2.0
            low, high = (middle, high) if rise(middle) < _RISE else (low, middle)
        return high
