"""How good an evaluator is as one more rater: agreement with and without it, where it deviates from people, and whether
it is calibrated to their scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from evalapp.stats.agreement.alternative_test import AlternativeTest, alternative_annotator_test
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.core.coding import FloatArray, encode, float_column, identifiers
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.replicates import estimate_mean
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import Bootstrap

NAN = float("nan")
#: Outputs without which no report is made.
LEAST_OUTPUTS = 3
#: Bins of the calibration table.
BINS = 5


@dataclass(frozen=True)
class JudgeReport:
    """`scaling` is (slope, intercept) by which scores were brought to people's scale, None if they are on it.

    `alpha_without` and `alpha_with`: Krippendorff's alpha among people, and with the evaluator as one more rater, on
    the outputs that it has scored. `correlation`: Spearman's, of scores with mean ratings, resampled by groups of
    items. `confusion[i][j]`: outputs whose mean rating is nearest to point i and whose score is nearest to point j of
    `points`. `bias`: mean of score - mean rating by system, with Student's interval over groups of items. `length`:
    Spearman's correlation of that difference with the length of the text. `bins`: mean score, mean rating and number of
    outputs, by equal numbers of outputs in the order of the score. `slope` and `intercept`: least squares of mean
    ratings on scores; 1 and 0 are perfect."""

    n_outputs: int
    n_raters: int
    scaling: tuple[float, float] | None
    alpha_without: Estimate
    alpha_with: Estimate
    correlation: Estimate
    alternative: AlternativeTest
    points: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]
    mean_difference: Estimate
    mean_absolute: Estimate
    bias: tuple[tuple[str, Estimate], ...]
    length: Estimate
    bins: tuple[tuple[float, float, int], ...]
    slope: float
    intercept: float
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return every field as JSON-safe values."""
        names = ("alpha_without", "alpha_with", "correlation", "mean_difference", "mean_absolute", "length")
        return {
            "n_outputs": self.n_outputs, "n_raters": self.n_raters,
            "scaling": None if self.scaling is None else list(self.scaling),
            **{name: getattr(self, name).as_dict() for name in names},
            "alternative": self.alternative.as_dict(), "points": list(self.points),
            "confusion": [list(row) for row in self.confusion],
            "bias": [{"system": name, **found.as_dict()} for name, found in self.bias],
            "bins": [{"score": score, "rating": rating, "n": n} for score, rating, n in self.bins],
            "slope": _finite(self.slope), "intercept": _finite(self.intercept), "note": self.note,
        }  # fmt: skip


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class RatedOutputs:
    """Columns (n,) with a row per rating: `output`, `rater`, `rating`, and of the output its `system`, `group` of items
    and `length` in characters."""

    output: ArrayLike
    rater: ArrayLike
    rating: ArrayLike
    system: ArrayLike
    group: ArrayLike
    length: ArrayLike


def report_as_rater(
    rated: RatedOutputs,
    score: ArrayLike,
    *,
    points: tuple[float, ...],
    same_scale: bool,
    epsilon: float = 0.1,
    bootstrap: Bootstrap | None = None,
) -> JudgeReport:
    """Return the report of an evaluator on the outputs that people rated and it scored.

    `score`: (n,) the evaluator's value for the output of each rating, nan where it has none. `points`: the points of
    people's scale. Unless it is on the `same_scale`, the score is brought to people's mean and standard deviation over
    outputs, which flatters its bias and calibration but not its order. `epsilon`: see `alternative_annotator_test`.
    `bootstrap`: for the intervals of alpha and correlation, over groups of items; None: 1,000 resamples.
    """
    y = float_column(rated.rating, "rating")
    x = float_column(score, "score", len(y))
    columns = {name: getattr(rated, name) for name in ("output", "rater", "system", "group")}
    names = {name: identifiers(column, name, len(y)) for name, column in columns.items()}
    known = ~(np.isnan(x) | np.isnan(y))
    y, x = y[known], x[known]
    names = {name: column[known] for name, column in names.items()}
    size = float_column(rated.length, "length")[known]
    outputs, labels = encode(names["output"], "output") if len(y) else (np.zeros(0, dtype=np.int64), np.zeros(0))
    if len(labels) < LEAST_OUTPUTS:
        return _make_empty(len(labels), points, epsilon)
    first = np.unique(outputs, return_index=True)[1]
    mean = np.bincount(outputs, y) / np.bincount(outputs)
    found, scaling = x[first], None
    if not same_scale:
        found, scaling = _bring_to_scale(found, mean)
    per_row = found[outputs]
    settings = bootstrap or Bootstrap(resamples=1_000)
    alphas = _compute_alphas(outputs, y, found, names["group"], first, settings)
    difference = found - mean
    groups = names["group"][first]
    slope, intercept = _fit_line(found, mean)
    return JudgeReport(
        n_outputs=len(labels),
        n_raters=len(set(names["rater"].tolist())),
        scaling=scaling,
        alpha_without=alphas[0],
        alpha_with=alphas[1],
        correlation=_correlate_with_people(found, mean, names["system"][first], groups, settings),
        alternative=alternative_annotator_test(outputs, names["rater"], y, per_row, epsilon=epsilon),
        points=points,
        confusion=_count_confusion(found, mean, points),
        mean_difference=_mean_over_groups(difference, groups),
        mean_absolute=_mean_over_groups(np.abs(difference), groups),
        bias=_list_bias(difference, names["system"][first], groups),
        length=_correlate(difference, size[first]),
        bins=_make_bins(found, mean),
        slope=slope,
        intercept=intercept,
    )


def _make_empty(n: int, points: tuple[float, ...], epsilon: float) -> JudgeReport:
    note = f"fewer than {LEAST_OUTPUTS} outputs have ratings and a score"
    none = Estimate.undefined(note, n)
    test = AlternativeTest((), NAN, NAN, epsilon, False, note)
    return JudgeReport(n, 0, None, none, none, none, test, points, (), none, none, (), none, (), NAN, NAN, note)


def _bring_to_scale(score: FloatArray, mean: FloatArray) -> tuple[FloatArray, tuple[float, float]]:
    spread = float(score.std())
    slope = float(mean.std()) / spread if spread else 0.0
    intercept = float(mean.mean()) - slope * float(score.mean())
    return slope * score + intercept, (slope, intercept)


def _compute_alphas(
    outputs: NDArray[Any],
    y: FloatArray,
    found: FloatArray,
    group: NDArray[Any],
    first: NDArray[Any],
    settings: Bootstrap,
) -> tuple[Estimate, Estimate]:
    """Return alpha among people, and with the evaluator, on the same outputs."""
    shared = np.bincount(outputs)[outputs] >= 2
    without = krippendorff_alpha(outputs[shared], y[shared], bootstrap=settings.with_cluster(group[shared]))
    unit = np.concatenate([outputs, np.arange(len(found))])
    value = np.concatenate([y, found])
    groups = np.concatenate([group, group[first]])
    rows = shared if shared.any() else np.ones(len(outputs), dtype=bool)
    rated = np.zeros(len(found), dtype=bool)
    rated[outputs[rows]] = True
    keep = np.concatenate([rows, rated])
    return without, krippendorff_alpha(unit[keep], value[keep], bootstrap=settings.with_cluster(groups[keep]))


def _correlate_with_people(
    found: FloatArray, mean: FloatArray, system: NDArray[Any], group: NDArray[Any], settings: Bootstrap
) -> Estimate:
    chosen = CorrelationSettings(coefficients=("spearman",))
    rows = np.arange(len(found))
    return correlate(found, mean, rows, system, settings=chosen, bootstrap=settings.with_cluster(group))["spearman"]


def _count_confusion(found: FloatArray, mean: FloatArray, points: tuple[float, ...]) -> tuple[tuple[int, ...], ...]:
    if not points:
        return ()
    scale = np.array(points)
    # Halfway means belong to the lower point.
    rows = np.abs(mean[:, None] - scale).argmin(axis=1)
    columns = np.abs(found[:, None] - scale).argmin(axis=1)
    table = np.zeros((len(points), len(points)), dtype=int)
    np.add.at(table, (rows, columns), 1)
    return tuple(tuple(int(n) for n in row) for row in table)


def _mean_over_groups(values: FloatArray, groups: NDArray[Any]) -> Estimate:
    """Return the mean over outputs with an interval from the means of groups of items."""
    codes, labels = encode(groups, "group")
    by_group = np.bincount(codes, values) / np.bincount(codes)
    estimate, _sd = estimate_mean(by_group)
    mean = float(values.mean())
    shift = mean - estimate.value
    return Estimate(mean, estimate.low + shift, estimate.high + shift, len(labels), estimate.note)


def _list_bias(difference: FloatArray, system: NDArray[Any], groups: NDArray[Any]) -> tuple[tuple[str, Estimate], ...]:
    names = sorted(set(system.tolist()), key=str)
    return tuple((str(name), _mean_over_groups(difference[system == name], groups[system == name])) for name in names)


def _correlate(difference: FloatArray, size: FloatArray) -> Estimate:
    if np.ptp(difference) == 0 or np.ptp(size) == 0:
        return Estimate.undefined("all differences or all lengths are equal", len(size))
    rho = float(stats.spearmanr(difference, size).statistic)
    n = len(size)
    if n < 5 or abs(rho) >= 1:
        return Estimate.point(rho, n, "too few outputs for an interval")
    # Bonett and Wright (2000).
    reach = float(stats.norm.ppf(0.975)) * math.sqrt((1 + rho**2 / 2) / (n - 3))
    middle = math.atanh(rho)
    return Estimate(rho, math.tanh(middle - reach), math.tanh(middle + reach), n)


def _make_bins(found: FloatArray, mean: FloatArray) -> tuple[tuple[float, float, int], ...]:
    order = np.argsort(found, kind="stable")
    parts = np.array_split(order, min(BINS, len(order)))
    return tuple((float(found[part].mean()), float(mean[part].mean()), len(part)) for part in parts)


def _fit_line(found: FloatArray, mean: FloatArray) -> tuple[float, float]:
    if np.ptp(found) == 0:
        return NAN, NAN
    line = stats.linregress(found, mean)
    return float(line.slope), float(line.intercept)
