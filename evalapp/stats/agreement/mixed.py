"""Linear mixed models of ratings with crossed random effects: REML variances, effects and their uncertainty.

y = fixed level + one random effect per factor + residual. `components` and `calibration` choose the factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array, diags_array, hstack

from evalapp.stats.core.coding import FloatArray, IntArray

# Ratios of variances below this count as zero.
_ZERO = 1e-8
# Largest number of cells of the products by size that is held in memory.
_CELLS = 1 << 22
# From this number of unknowns on BLAS threads save time; below, synchronisation costs up to ten times the work.
_THREADED = 400
# Rise of the deviance at the ends of a 95 % interval of a single parameter.
_RISE = 3.841458820694124


@dataclass(frozen=True, slots=True)
class VarianceFit:
    """Variances of the random factors, in the order given, and of the residual; `deviance` is -2 log restricted
    likelihood up to a constant that depends only on the data."""

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
    """y'Py, log|M|, and the equations after elimination of the largest factor: scale of the unknowns, matrix and
    right side; for the eliminated factor its ratio of variances and, by size of its levels, the diagonal."""

    square: float
    logdet: float
    scale: FloatArray
    matrix: FloatArray
    right: FloatArray
    ratio: float
    inner: FloatArray

    def inverse(self) -> tuple[FloatArray, FloatArray]:
        """Inverse of the reduced matrix, and the solution. (LAPACK's dpotri starts threads even for small matrices.)"""
        inverse = np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)
        return inverse, np.asarray(inverse @ self.right)


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class MixedModel:
    """y (n,), codes of the one fixed factor (all levels occur), codes of the random factors.

    With gamma the ratios of variances to the residual's and Lambda = diag(sqrt(gamma)), all follows from

    M = [[X'X, X'Z Lambda], [Lambda Z'X, Lambda Z'Z Lambda + I]]:  log|V| + log|X'V^-1 X| = log|M| and y'Py = y'y -
    r'M^-1 r (Henderson's equations). The factor with most levels is eliminated: its block is diagonal, and levels
    with the same number of rows have the same diagonal. Their contribution to the other equations is summed by size
    once, so that no step visits rows or levels again."""

    def __init__(self, y: FloatArray, fixed: IntArray, random: Sequence[IntArray]) -> None:
        n = len(y)
        self.n, self.n_fixed = n, int(fixed.max(initial=-1)) + 1
        self.levels = [int(codes.max(initial=-1)) + 1 for codes in random]
        # Centred to avoid cancellation in the squares of large values; the level is added to the fixed effects again.
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
        big = random[self.big] if random else np.empty(0, dtype=np.int64)
        n_big = self.levels[self.big] if random else 0
        self._cross_big = csr_array((ones, (big, rows)), shape=(n_big, n)) @ dense if random else csr_array((0, at))
        self._right_big = np.bincount(big, weights=y, minlength=n_big) if random else np.empty(0)
        self._sum_by_size(np.bincount(big, minlength=n_big))

    def _sum_by_size(self, counts: IntArray) -> None:
        """Sums over the levels of the eliminated factor with equally many rows: number, products of their blocks,
        products with their right sides, and the squares of the products."""
        sizes, self._which = np.unique(counts, return_inverse=True)
        self._sizes, n = sizes.astype(np.float64), len(sizes)
        self._n_of_size = np.bincount(self._which, minlength=n).astype(np.float64)
        self._square_of_size = np.bincount(self._which, weights=self._right_big**2, minlength=n)
        of_size = csr_array((self._right_big, (self._which, np.arange(len(counts)))), shape=(n, len(counts)))
        self._right_of_size = (of_size @ self._cross_big).toarray().T
        self._cross_of_size: FloatArray | None = None
        width = len(self._right_dense)
        if n * width**2 <= _CELLS:
            blocks = (self._cross_big[np.flatnonzero(self._which == place)] for place in range(n))
            self._cross_of_size = np.array([(block.T @ block).toarray() for block in blocks]).reshape(n, width, width)

    def _cross(self, weight: FloatArray) -> FloatArray:
        """Products of the eliminated factor's blocks, summed with a weight for every size."""
        if self._cross_of_size is not None:
            return np.tensordot(weight, self._cross_of_size, 1)
        return (self._cross_big.T @ (diags_array(weight[self._which]) @ self._cross_big)).toarray()

    def fit(self, start: FloatArray | None = None, *, precise: bool = False) -> VarianceFit:
        """Return the variances of largest restricted likelihood, none negative.

        `start`: ratios to the residual variance close to the solution, such as those of nearly the same ratings,
        which save steps. `precise`: to about twelve digits, so that another order of the rows gives the same result."""
        if self.n <= self.n_fixed:
            return VarianceFit(np.zeros(len(self.levels)), 0.0, math.nan)
        if not self.levels:
            return self._fitted(np.empty(0))
        with self._threads():
            return self._search(start, precise)

    def _threads(self) -> AbstractContextManager[Any]:
        return nullcontext() if len(self._right_dense) >= _THREADED else _blas().limit(limits=1, user_api="blas")

    def _search(self, start: FloatArray | None, precise: bool) -> VarianceFit:
        from scipy.optimize import minimize

        def profiled(logs: FloatArray) -> tuple[float, FloatArray]:
            solved = self._solve(np.exp(logs))
            slope = self._slope(solved, solved.square / (self.n - self.n_fixed))
            return self._profiled(solved), slope

        def slope(logs: FloatArray) -> FloatArray:
            return profiled(logs)[1]

        if start is not None and precise and (start > 10 * _ZERO).all():
            near = self._polished(np.log(start), slope)
            if near is not None:
                return self._fitted(np.exp(near))
        bounds = [(math.log(_ZERO) - 1.0, math.log(1e8))] * len(self.levels)
        begin, options = np.full(len(self.levels), math.log(0.3)), {"maxiter": 300, "ftol": 1e-14, "gtol": 1e-7}
        if start is not None:
            begin, options = np.log(np.maximum(start, 1e-3)), {"maxiter": 100, "ftol": 1e-9, "gtol": 1e-3}
        result = minimize(profiled, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        polished = self._polished(result.x, slope) if precise else None
        gamma = np.exp(result.x if polished is None else polished)
        return self._fitted(np.where(gamma < 10 * _ZERO, 0.0, gamma))

    @staticmethod
    def _polished(logs: FloatArray, slope: Callable[[FloatArray], FloatArray]) -> FloatArray | None:
        """Return the result of quasi-Newton steps (Broyden 1965) close to the optimum, for ratios above 0; None if
        they diverge."""
        inside = np.flatnonzero((logs > math.log(10 * _ZERO)) & (logs < math.log(1e7)))
        logs, step, base = logs.copy(), 1e-5, slope(logs)[inside]
        columns = []
        for place in inside:
            moved = logs.copy()
            moved[place] += step
            columns.append((slope(moved)[inside] - base) / step)
        if not columns:
            return None
        curvature = np.array(columns).T
        if not np.linalg.eigvalsh(curvature + curvature.T)[0] > 0:
            return None
        for _ in range(10):
            change = np.linalg.lstsq(curvature, -base, rcond=None)[0]
            if not np.abs(change).max() < 0.5:
                return None
            logs[inside] += change
            if np.abs(change).max() < 1e-9:
                return logs
            before, base = base, slope(logs)[inside]
            missed = base - before - curvature @ change
            curvature = curvature + np.outer(missed, change) / float(change @ change)
        return None

    def intervals(self, fitted: VarianceFit) -> list[tuple[float, float]]:
        """Return 95 % intervals of the random variances, then of the residual's.

        From the curvature of the deviance in the logarithms of the variances above 0. A variance of 0 has the lower
        end 0, and as its upper end the point where the deviance has risen by 3.84 with the others fixed."""
        with self._threads():
            return self._intervals(fitted)

    def _intervals(self, fitted: VarianceFit) -> list[tuple[float, float]]:
        values = np.append(fitted.variances, fitted.residual)
        if not fitted.residual > 0 or math.isnan(fitted.deviance):
            return [(math.nan, math.nan)] * len(values)
        inside = np.flatnonzero(values > _ZERO * fitted.residual)
        variance = np.diag(np.linalg.pinv(self._curvature(values, inside)))
        result = []
        for place, value in enumerate(values):
            at = np.flatnonzero(inside == place)
            if len(at) and variance[at[0]] > 0:
                factor = math.exp(min(1.959964 * math.sqrt(2.0 * variance[at[0]]), 50.0))
                result.append((float(value / factor), float(value * factor)))
            else:
                result.append((0.0, self._upper(values, place, fitted)))
        return result

    def effects(self, gamma: FloatArray, residual: float) -> Effects:
        """Return best linear unbiased estimates (fixed) and predictions (random) at given variances, with the
        standard deviations of their errors."""
        with self._threads():
            return self._effects(gamma, residual)

    def _effects(self, gamma: FloatArray, residual: float) -> Effects:
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
            # Back-substitution of the eliminated factor.
            values, spread = self._eliminated(solved, inverse, solution)
            random.append(roots[place] * values)
            random_sd.append(roots[place] * np.sqrt(spread * residual))
        fixed = slice(0, self.n_fixed)
        return Effects(dense[fixed] + self._level, dense_sd[fixed], tuple(random), tuple(random_sd))

    def _eliminated(self, solved: _Solved, inverse: FloatArray, solution: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scaled effects of the eliminated factor by back-substitution, and the diagonal of their
        inverse."""
        inner, scale, block = solved.inner[self._which], solved.scale, self._cross_big
        values = math.sqrt(solved.ratio) * (self._right_big - block @ (scale * solution)) / inner
        product = np.asarray(block @ (inverse * scale[:, None] * scale[None, :]))
        along = np.asarray(block.multiply(product).sum(axis=1)).reshape(-1)
        return values, 1.0 / inner + solved.ratio * along / inner**2

    def _slope(self, solved: _Solved, residual: float) -> FloatArray:
        """Return the derivative of the deviance in log gamma at a residual variance: q - tr(M^-1) - |u|^2 / residual
        for each factor, u its scaled effects (Z'Py = u / sqrt(gamma))."""
        inverse, solution = solved.inverse()
        diagonal = np.diag(inverse)
        slope = np.empty(len(self.levels))
        for place, (start, size) in enumerate(zip(self._place, self.levels, strict=True)):
            if start >= 0:
                effect = solution[start : start + size]
                trace, square = float(diagonal[start : start + size].sum()), float(effect @ effect)
            else:
                # The sums of `_eliminated` over all levels, by size.
                weight, at = solved.ratio / solved.inner**2, solved.scale * solution
                cross, right = self._cross(weight), self._right_of_size @ weight
                along = float((inverse * cross * solved.scale[:, None] * solved.scale[None, :]).sum())
                trace = float((self._n_of_size / solved.inner).sum()) + along
                square = float(self._square_of_size @ weight) - 2.0 * float(right @ at) + float(at @ cross @ at)
            slope[place] = size - trace - square / max(residual, 1e-300)
        return slope

    def _solve(self, gamma: FloatArray) -> _Solved:
        scale = np.ones(len(self._right_dense))
        ridge = np.zeros(len(scale))
        for place, start in enumerate(self._place):
            if start >= 0:
                scale[start : start + self.levels[place]] = math.sqrt(gamma[place])
                ridge[start : start + self.levels[place]] = 1.0
        ratio = float(gamma[self.big]) if self.levels else 0.0
        inner = ratio * self._sizes + 1.0
        weight = ratio / inner
        matrix = (self._cross_dense - self._cross(weight)) * scale[:, None] * scale[None, :]
        matrix[np.diag_indices_from(matrix)] += ridge
        right = (self._right_dense - self._right_of_size @ weight) * scale
        square = self._square - float(self._square_of_size @ weight)
        lower = np.linalg.cholesky(matrix)
        half = solve_triangular(lower, right, lower=True, check_finite=False)
        logdet = float(self._n_of_size @ np.log(inner)) + 2.0 * float(np.log(np.diag(lower)).sum())
        return _Solved(max(square - float(half @ half), 0.0), logdet, scale, matrix, right, ratio, inner)

    def _profiled(self, solved: _Solved) -> float:
        freedom = self.n - self.n_fixed
        return freedom * math.log(max(solved.square, 1e-300) / freedom) + solved.logdet

    def _fitted(self, gamma: FloatArray) -> VarianceFit:
        solved = self._solve(gamma)
        residual = solved.square / (self.n - self.n_fixed)
        return VarianceFit(gamma * residual, residual, self._profiled(solved) + self.n - self.n_fixed)

    def _deviance(self, values: FloatArray) -> float:
        """Return the deviance at any variances, the residual's last."""
        residual = float(values[-1])
        solved = self._solve(values[:-1] / residual)
        return (self.n - self.n_fixed) * math.log(residual) + solved.logdet + solved.square / residual

    def _gradient(self, values: FloatArray) -> FloatArray:
        """Return derivatives of the deviance in the logarithms of all variances."""
        residual = float(values[-1])
        solved = self._solve(values[:-1] / residual)
        slope = self._slope(solved, residual)
        return np.append(slope, self.n - self.n_fixed - solved.square / residual - slope.sum())

    def _curvature(self, values: FloatArray, inside: IntArray) -> FloatArray:
        """Return second derivatives of the deviance in the logarithms of the variances `inside`."""
        step = 1e-3
        rows = []
        for place in inside:
            up, down = values.copy(), values.copy()
            up[place] *= math.exp(step)
            down[place] *= math.exp(-step)
            rows.append((self._gradient(up) - self._gradient(down))[inside] / (2 * step))
        result = np.array(rows)
        return np.asarray((result + result.T) / 2)

    def _upper(self, values: FloatArray, place: int, fitted: VarianceFit) -> float:
        """Return the value of a variance at which the deviance has risen by 3.84, with the others fixed."""
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
