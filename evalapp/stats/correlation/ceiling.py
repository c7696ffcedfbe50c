"""Noise ceiling: the highest correlation that a metric can reach with noisy human scores, and correlations divided
by it. Coefficients of agreement (alpha, kappa, ICC) are in `agreement`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import (
    BoolArray,
    FloatArray,
    IntArray,
    encode,
    encode_pair,
    float_column,
    identifiers,
    parents,
)  # fmt: skip
from evalapp.stats.core.estimate import NAN, Estimate
from evalapp.stats.core.options import refuse_options
from evalapp.stats.correlation.coefficients import ALL_COEFFICIENTS, Coefficient
from evalapp.stats.correlation.grouping import GroupedCoefficients
from evalapp.stats.correlation.meta_evaluation import (
    DEFAULT_SETTINGS,
    CorrelationSettings,
    resample_correlation,
)
from evalapp.stats.resampling.bootstrap import Bootstrap, ClusterDraws, chunk_sizes, with_interval

CeilingKind: TypeAlias = Literal["split-half", "leave-one-out"]
CeilingOf: TypeAlias = Literal["metric", "reliability", "halves"]

CUT = "cut at 1: the coefficient is larger than the ceiling, which is an estimate"
NO_SECOND_RATER = "no output has two raters"

_STREAM = 4
#: Number of splits averaged per resample.
_SPLITS = 10


@dataclass(frozen=True, slots=True, eq=False)
class OutputRatings:
    """(n,) columns, one row per rating for a single aspect.

    value: nan = missing; output, rater: identifiers; item: of the output, default the output; system: of the output,
    required for the system level and for groupings."""

    value: ArrayLike
    output: ArrayLike
    rater: ArrayLike
    item: ArrayLike | None = None
    system: ArrayLike | None = None


#: Fewer resamples than the default, because each averages several splits.
CEILING_BOOTSTRAP = Bootstrap(resamples=500, seed=13)


def noise_ceiling(
    ratings: OutputRatings,
    *,
    kind: CeilingKind = "split-half",
    of: CeilingOf = "metric",
    repeats: int = 100,
    settings: CorrelationSettings = DEFAULT_SETTINGS,
    bootstrap: Bootstrap = CEILING_BOOTSTRAP,
) -> Estimate:
    """Return the correlation of human scores with human scores over the outputs with at least two raters
    (docs/explanation/statistics/agreement.md#noise-ceiling).

    `ratings`: one row per rating; `kind`: one of the two methods below; `settings`: coefficient, level, grouping and
    undefined groups.

    Several ratings of an output by one rater count as their mean, because agreement with oneself is not agreement
    between raters. `bootstrap.cluster` groups items for resampling (default: the item).

    - `split-half`: each output's raters are dealt into two halves at random, `repeats` times; r = mean correlation of
      the halves' means, in any level and grouping of `correlate`. From r the reliability of a rater, rho, is the
      positive root of r^2 = R(a) R(b), R(k) = k rho / (1 + (k - 1) rho), for halves of a and b raters, and the
      reliability of all k raters is R(k): for equal halves the Spearman-Brown formula 2 r / (1 + r). Sizes are
      harmonic means over outputs. `of` chooses what is returned: "metric" sqrt(R(k)), the correlation that a metric
      without error would have with these raters' mean, the ceiling; "reliability" R(k); "halves" r itself. The steps
      are exact for Pearson and customary for rank coefficients.
    - `leave-one-out`: each rater's ratings against the mean of the output's others, averaged over raters with at least
      3 such ratings, by their number: what one more person would reach. `of` does not apply. Segments, no grouping.

    n = outputs. The interval is a bootstrap over clusters of items, at the system level over systems (resampled
    items would add to the noise that is measured); each resample averages 10 of the splits."""
    _check(settings, kind, of, ratings.system)
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, not {repeats}")
    values = float_column(ratings.value, "value")
    present = np.isfinite(values)
    columns = [
        identifiers(c, name, len(values))[present] for c, name in ((ratings.output, "output"), (ratings.rater, "rater"))
    ]
    outputs, labels = encode(columns[0], "output")
    raters, _ = encode(columns[1], "rater")
    values = values[present]
    items, systems = (
        default if column is None else _code_outputs(column, name, present, outputs, len(labels))
        for column, name, default in (
            (ratings.item, "item", np.arange(len(labels))),
            (ratings.system, "system", np.zeros(len(labels), dtype=np.int64)),
        )
    )
    clusters = (
        items
        if bootstrap.cluster is None
        else _code_outputs(bootstrap.cluster, "cluster", present, outputs, len(labels))
    )
    values, outputs, raters = _one_each(values, outputs, raters)
    # Equal ratings of an output are exchangeable, so the splits do not depend on the raters' names.
    order = np.lexsort((values, outputs))
    values, outputs, raters = values[order], outputs[order], raters[order]
    sizes = np.bincount(outputs, minlength=len(labels))
    shared = sizes[outputs] >= 2
    if not shared.any():
        return Estimate.undefined(NO_SECOND_RATER)
    values, outputs, raters = values[shared], outputs[shared], raters[shared]
    if kind == "leave-one-out":
        return _leave_one_out(values, outputs, raters, clusters, settings.coefficient, bootstrap)
    point, drawn, resampled = _split_half(values, outputs, (items, systems, clusters), repeats, settings, bootstrap)
    if not point.is_defined:
        return point
    counts = sizes[sizes >= 2].astype(np.float64)
    if of != "halves":
        a, b, whole = (_harmonic(part) for part in (np.floor(counts / 2), np.ceil(counts / 2), counts))
        point = Estimate.point(float(_stepped(np.array([point.value]), a, b, whole, of)[0]), point.n, point.note)
        drawn = _stepped(drawn, a, b, whole, of)
        if not point.is_defined:
            return Estimate.undefined("the halves of the raters do not correlate positively", point.n)
    return with_interval(point, drawn, clusters=resampled, confidence=bootstrap.confidence)


def disattenuate(estimate: Estimate, ceiling: Estimate) -> Estimate:
    """Return `estimate` divided by `ceiling`: for "split-half" Spearman's correction for attenuation by human noise.

    The interval combines both by the method of variance estimates recovery (Donner and Zou 2012), which treats them
    as independent; without an interval of the ceiling the ends are divided by its value. Undefined unless the
    ceiling is positive. Results outside -1 and 1 are truncated, with a note."""
    result = _divided(estimate, ceiling)
    cut = replace(result, value=_cut(result.value), low=_cut(result.low), high=_cut(result.high))
    return cut.with_note(CUT) if abs(result.value) > 1 else cut


def _cut(number: float) -> float:
    return number if math.isnan(number) else min(1.0, max(-1.0, number))


def _divided(estimate: Estimate, ceiling: Estimate) -> Estimate:
    if not estimate.is_defined:
        return estimate
    if not ceiling.is_defined or ceiling.value <= 0:
        return Estimate.undefined(ceiling.note or "the ceiling is not positive", estimate.n)
    value = estimate.value / ceiling.value
    note = estimate.note
    if not estimate.has_interval:
        return Estimate.point(value, estimate.n, note)
    if not ceiling.has_interval:
        low, high = estimate.low / ceiling.value, estimate.high / ceiling.value
        return Estimate(value, low, high, estimate.n, note).with_note("the ceiling is taken as known")
    if ceiling.low <= 0:
        return Estimate.point(value, estimate.n, note).with_note("no interval: the ceiling may be 0")
    low, high = _ratio_interval(estimate, ceiling)
    if math.isnan(low) or math.isnan(high):
        return Estimate.point(value, estimate.n, note).with_note("no interval: that of the ceiling is too wide")
    return Estimate(value, low, high, estimate.n, note)


def _check(settings: CorrelationSettings, kind: str, of: str, system: ArrayLike | None) -> None:
    refuse_options(settings, "interval", "resampling_unit")
    coefficient, level, grouping = settings.coefficient, settings.level, settings.grouping
    if coefficient not in ALL_COEFFICIENTS:
        raise ValueError(f"coefficient is among {ALL_COEFFICIENTS}, not '{coefficient}'")
    if kind not in ("split-half", "leave-one-out") or of not in ("metric", "reliability", "halves"):
        raise ValueError(f"kind is split-half or leave-one-out, of metric, reliability or halves; not {kind}, {of}")
    if kind == "leave-one-out" and (level, grouping) != ("segment", "none"):
        raise ValueError("leave-one-out is for segments without grouping: kind='split-half' for the others")
    if system is None and (level == "system" or grouping == "system"):
        raise ValueError("the system level and grouping need `system`")


def _code_outputs(column: ArrayLike, name: str, present: BoolArray, outputs: IntArray, n: int) -> IntArray:
    codes, _ = encode(identifiers(column, name, len(present))[present], name)
    return parents(outputs, codes, n, name)


def _one_each(values: FloatArray, outputs: IntArray, raters: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Return one rating per output and rater: the mean if there are several."""
    order = np.lexsort((values, raters, outputs))
    pair, rows = encode_pair(outputs[order], raters[order], int(raters.max(initial=0)) + 1)
    if len(rows) == len(values):
        return values, outputs, raters
    means = np.bincount(pair, weights=values[order]) / np.bincount(pair)
    return means, outputs[order][rows], raters[order][rows]


def _harmonic(sizes: FloatArray) -> float:
    return float(len(sizes) / (1.0 / sizes).sum())


def _split_half(
    values: FloatArray,
    outputs: IntArray,
    of_outputs: tuple[IntArray, IntArray, IntArray],
    repeats: int,
    settings: CorrelationSettings,
    bootstrap: Bootstrap,
) -> tuple[Estimate, FloatArray, dict[str, int]]:
    """Return the mean correlation of random halves, its replicates, and the resampled units. Rows are sorted by
    output; `of_outputs` are item, system and cluster of every output."""
    settings = replace(settings, resampling_unit="systems" if settings.level == "system" else "inputs")
    kept, codes = np.unique(outputs, return_inverse=True)
    items, systems, cluster = (column[kept] for column in of_outputs)
    sizes = np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(codes)) - starts[codes]
    rng = np.random.default_rng([bootstrap.seed, _STREAM])
    points: list[float] = []
    drawn: list[FloatArray] = []
    clusters: dict[str, int] = {}
    for number in range(repeats):
        # Rows are already sorted by output, so the shuffled order falls into the same segments.
        dealt = np.lexsort((rng.random(len(codes)), codes))
        first = place < sizes[codes] // 2
        sides = (dealt[first], dealt[~first])
        one, two = (np.bincount(codes[rows], weights=values[rows]) / np.bincount(codes[rows]) for rows in sides)
        point, replicates, clusters = resample_correlation(
            one,
            two,
            items,
            systems,
            settings=settings,
            bootstrap=replace(bootstrap, cluster=cluster, resamples=bootstrap.resamples if number < _SPLITS else 0),
        )
        if not point.is_defined:
            continue
        points.append(point.value)
        if replicates.size:
            drawn.append(replicates - point.value)
    if not points:
        return point, np.empty(0), clusters
    mean = Estimate.point(float(np.mean(points)), len(kept))
    if len(points) < repeats:
        mean = mean.with_note(f"{repeats - len(points)} of {repeats} splits are undefined")
    # The resampled splits give the spread of r; all splits give its location.
    return mean, np.minimum(mean.value + np.mean(drawn, axis=0), 1.0) if drawn else np.empty(0), clusters


def _stepped(r: FloatArray, a: float, b: float, whole: float, of: CeilingOf) -> FloatArray:
    """Return the reliability of `whole` raters, or its root, from the correlation of halves of a and b; nan unless r
    > 0."""
    square = np.where(r > 0, np.minimum(r, 1.0), np.nan) ** 2
    # r^2 (1 + (a-1) rho) (1 + (b-1) rho) = a b rho^2, a quadratic with one positive root.
    two = a * b - square * (a - 1) * (b - 1)
    one = -square * (a + b - 2)
    rho = (-one + np.sqrt(one * one + 4 * two * square)) / (2 * two)
    reliability = whole * rho / (1 + (whole - 1) * rho)
    return np.asarray(np.sqrt(reliability) if of == "metric" else reliability)


def _leave_one_out(
    values: FloatArray,
    outputs: IntArray,
    raters: IntArray,
    items: IntArray,
    coefficient: Coefficient,
    bootstrap: Bootstrap,
) -> Estimate:
    sums, sizes = np.bincount(outputs, weights=values), np.bincount(outputs)
    others = (sums[outputs] - values) / (sizes[outputs] - 1)
    _, group = np.unique(raters, return_inverse=True)
    n_raters = int(group.max()) + 1
    grouped = GroupedCoefficients(values, others, group, n_raters, (coefficient,))
    clusters, cluster = np.unique(items[outputs], return_inverse=True)
    n_outputs = len(np.unique(outputs))

    def average(weights: FloatArray) -> FloatArray:
        result = grouped(weights)[coefficient]
        counts = np.stack([np.bincount(group, weights=column, minlength=n_raters) for column in weights.T], axis=1)
        counts = np.where(np.isnan(result), 0.0, counts)
        total = counts.sum(axis=0)
        above = (np.nan_to_num(result) * counts).sum(axis=0)
        return np.asarray(np.divide(above, total, out=np.full(total.shape, np.nan), where=total > 0))

    whole = float(average(np.ones((len(values), 1)))[0])
    if math.isnan(whole):
        reasons = ", ".join(f"{count}: {reason}" for reason, count in grouped.undefined_counts().items())
        return Estimate.undefined(f"no rater has a defined coefficient ({reasons})", n_outputs)
    point = Estimate.point(whole, n_outputs)
    draws = ClusterDraws(len(clusters), bootstrap.seed)
    parts = [average(draws.take(size)[cluster]) for size in chunk_sizes(bootstrap.resamples, len(values))]
    drawn = np.concatenate(parts) if parts else np.empty(0)
    return with_interval(point, drawn, clusters={"items": len(clusters)}, confidence=bootstrap.confidence)


def _ratio_interval(above: Estimate, below: Estimate) -> tuple[float, float]:
    """Return the MOVER interval of a ratio with a positive denominator (Donner and Zou 2012)."""
    x, y = above.value, below.value
    low = _end(x * y, above.low * (2 * x - above.low), below.high * (2 * y - below.high), -1.0)
    high = _end(x * y, above.high * (2 * x - above.high), below.low * (2 * y - below.low), 1.0)
    return low, high


def _end(product: float, above: float, below: float, sign: float) -> float:
    if below <= 0:
        return NAN
    return (product + sign * math.sqrt(max(product * product - above * below, 0.0))) / below
