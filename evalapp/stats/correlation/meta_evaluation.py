"""Meta-evaluation: correlation of an evaluator's scores with human scores in all groupings, with bootstrap intervals.

Long-form input, one row per output; missing scores are nan. Coefficients come from `coefficients`, `grouping` and
`weighted`, resamples from `resampling`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import FloatArray, IntArray, encode, float_column, identifiers, parents, snap
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.options import refuse_options
from evalapp.stats.correlation.coefficients import ALL_COEFFICIENTS, COEFFICIENTS, VALUES, Coefficient, undefined_reason
from evalapp.stats.correlation.grouping import GroupedCoefficients
from evalapp.stats.correlation.weighted import WeightedCoefficients, group_coefficients, summing_matrix
from evalapp.stats.resampling.bca import LeaveOneOut, with_bca_interval
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    ClusterDraws,
    Draws,
    iterate_draws,
    with_interval,
)
from evalapp.stats.resampling.jackknife import NAME, with_jackknife

Level: TypeAlias = Literal["segment", "system"]
Grouping: TypeAlias = Literal["none", "item", "system"]
ResamplingUnit: TypeAlias = Literal["inputs", "systems", "both"]
NanRule: TypeAlias = Literal["drop", "zero"]
Interval: TypeAlias = Literal["percentile", "bca", "jackknife"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "level": ("segment", "system"),
    "grouping": ("none", "item", "system"),
    "resampling_unit": ("inputs", "systems", "both"),
    "nan_rule": ("drop", "zero"),
    "interval": ("percentile", "bca", "jackknife"),
}

#: Populations to which an interval or test generalises. Items are resampled with all their systems, so errors of an
#: evaluator about a whole system do not vary; only resampled systems generalise to other systems.
THESE_SYSTEMS = "these systems, items like these"
OTHER_SYSTEMS = "systems and items like these"


@dataclass(frozen=True, slots=True)
class CorrelationSettings:
    """Which correlation with human scores is computed.

    level: `segment` (outputs) or `system` (each system's mean score over the outputs that have both scores).
    grouping: of segments: `none`, one coefficient over all pairs; `item`, over systems within each item, averaged over
        items; `system`, over items within each system, averaged over systems.
    coefficients: among `ALL_COEFFICIENTS`; a function that computes one takes the first.
    nan_rule: a group whose metric or human scores are constant has no coefficient; `drop` leaves it out, `zero` counts
        it as 0 (fairer between metrics, as dropping rewards constants). Groups of fewer than 3 pairs are left out under
        both. An undefined coefficient that is not an average over groups stays undefined under both.
    interval: percentiles of resamples, `bca`, which corrects them for bias and skewness, or `jackknife` over systems
        (system level only). None: percentiles for segments, the jackknife for systems.
    resampling_unit: drawn with replacement: `inputs` (clusters of items), `systems`, or `both`, which adds the noise of
        the items a second time and so misses where it is most of the noise (coverage .83 of 95 % with 32 systems).
        None: `inputs` for segments.
    """

    level: Level = "segment"
    grouping: Grouping = "none"
    coefficients: Sequence[Coefficient] = COEFFICIENTS
    nan_rule: NanRule = "drop"
    interval: Interval | None = None
    resampling_unit: ResamplingUnit | None = None

    @property
    def coefficient(self) -> Coefficient:
        """The first coefficient."""
        return self.coefficients[0]


DEFAULT_SETTINGS = CorrelationSettings()


@dataclass(frozen=True, slots=True)
class Correlations:
    """Estimates by coefficient, with the counts and settings behind them.

    Counts: `n_rows` given, `n_pairs` with both scores, `n_missing_metric` and `n_missing_human` without (a row may
    be in both); `n_items`, `n_systems`, `n_clusters` among the pairs; `n_groups` of the grouping (0 without),
    `undefined_groups` by reason; `undefined_resamples` by coefficient, left out of the interval."""

    estimates: dict[Coefficient, Estimate]
    level: Level
    grouping: Grouping
    bootstrap: ResamplingUnit
    nan_rule: NanRule
    resamples: int
    seed: int
    confidence: float
    n_rows: int
    n_pairs: int
    n_missing_metric: int
    n_missing_human: int
    n_items: int
    n_systems: int
    n_clusters: int
    n_groups: int = 0
    undefined_groups: dict[str, int] = field(default_factory=dict)
    undefined_resamples: dict[str, int] = field(default_factory=dict)
    interval: Interval = "percentile"

    def __getitem__(self, coefficient: Coefficient) -> Estimate:
        return self.estimates[coefficient]

    @property
    def population(self) -> str:
        """Systems and items to which the intervals generalise."""
        return THESE_SYSTEMS if self.bootstrap == "inputs" else OTHER_SYSTEMS

    @property
    def signature(self) -> str:
        """Settings as one line, in the style of sacrebleu."""
        if self.interval == "jackknife":
            return (
                f"level:{self.level}|grouping:{self.grouping}|nan:{self.nan_rule}|interval:{NAME}"
                f"|conf:{self.confidence:g}"
            )
        interval = "" if self.interval == "percentile" else f"|interval:{self.interval}"
        return (
            f"level:{self.level}|grouping:{self.grouping}|nan:{self.nan_rule}|boot:{self.bootstrap}"
            f"|resamples:{self.resamples}|seed:{self.seed}|conf:{self.confidence:g}{interval}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return every field as JSON-safe values, estimates by `Estimate.as_dict`, and the signature."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "estimates"}
        estimates = {name: estimate.as_dict() for name, estimate in self.estimates.items()}
        return {"estimates": estimates, "signature": self.signature, **plain}


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Complete pairs, coded, with the settings that all levels and groupings need."""

    metric: FloatArray
    human: FloatArray
    item: IntArray
    system: IntArray
    cluster_of_item: IntArray
    n_items: int
    n_systems: int
    n_clusters: int
    wanted: tuple[Coefficient, ...]
    bootstrap: ResamplingUnit
    resamples: int
    seed: int
    nan_rule: NanRule
    left_out: Literal["", "items", "systems"] = ""

    @property
    def cluster(self) -> IntArray:
        return self.cluster_of_item[self.item]

    def draws(self) -> tuple[Draws | None, Draws | None]:
        """Draws of items and of systems for this bootstrap; None for the side that is not resampled."""
        if self.left_out:
            one_by_one = LeaveOneOut(self.n_clusters if self.left_out == "items" else self.n_systems)
            return (one_by_one, None) if self.left_out == "items" else (None, one_by_one)
        items = ClusterDraws(self.n_clusters, self.seed, 0) if self.bootstrap != "systems" else None
        systems = ClusterDraws(self.n_systems, self.seed, 1) if self.bootstrap != "inputs" else None
        return items, systems

    def resampled(self) -> dict[str, int]:
        """Number of resampled units by name."""
        counts = {"inputs": ("items", self.n_clusters), "systems": ("systems", self.n_systems)}
        return {what: n for side, (what, n) in counts.items() if self.bootstrap in (side, "both")}

    def left_out_in_turn(self) -> list[_Pairs]:
        """The jackknife over each resampled side."""
        sides: tuple[Literal["items", "systems"], ...] = ("items", "systems")
        counts = self.resampled()
        return [
            replace(self, left_out=side, resamples=LeaveOneOut(counts[side]).n_blocks)
            for side in sides
            if side in counts
        ]

    def without_each_system(self) -> _Pairs:
        """The jackknife over systems."""
        return replace(self, left_out="systems", resamples=LeaveOneOut(self.n_systems).n_blocks)

    @property
    def can_resample(self) -> bool:
        return self.resamples > 0 and min(self.resampled().values()) >= 2


@dataclass(frozen=True, slots=True)
class _Route:
    """Result for one level or grouping: point estimates, replicates by coefficient, groups."""

    points: dict[Coefficient, Estimate]
    replicates: dict[str, FloatArray]
    n_groups: int = 0
    undefined_groups: dict[str, int] = field(default_factory=dict)


def correlate(
    metric: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    *,
    settings: CorrelationSettings = DEFAULT_SETTINGS,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Correlations:
    """Return the correlation of an evaluator with human scores, with intervals, by coefficient.

    Levels, groupings: docs/explanation/statistics/correlation.md#levels-and-groupings.

    `metric`, `human`: (n,) one value per output, human scores being the mean over raters; nan or infinite = missing,
    and only rows with both count. `item`, `system`: (n,) identifiers (each checkpoint is a system of its own). `n` of
    an estimate counts pairs, items or systems averaged over, or, at the system level, systems.

    Percentiles over resampled items generalise to other items for these systems; the jackknife generalises to other
    systems and items. `bootstrap.cluster` groups items, default the item itself. Resamples with an undefined
    coefficient are left out and counted.

    Raises `ColumnError` for columns that do not fit, ValueError for an unknown option.

    >>> settings, no_interval = CorrelationSettings(coefficients=("pearson",)), Bootstrap(resamples=0)
    >>> found = correlate([1, 2, 3], [1, 3, 2], list("aab"), list("xyx"), settings=settings, bootstrap=no_interval)
    >>> round(found["pearson"].value, 3)
    0.5
    """
    level, grouping, coefficients, nan_rule = (
        settings.level, settings.grouping, settings.coefficients, settings.nan_rule
    )  # fmt: skip
    resamples, confidence = bootstrap.resamples, bootstrap.confidence
    by_systems = level == "system" and settings.resampling_unit is None
    interval = settings.interval or ("jackknife" if by_systems else "percentile")
    unit = settings.resampling_unit or _default_unit(level, interval)
    _check(level=level, grouping=grouping, resampling_unit=unit, nan_rule=nan_rule, interval=interval)
    if interval == "jackknife" and not by_systems:
        raise ValueError(
            "the jackknife leaves out systems: level='system' without resampling_unit=, or another interval"
        )
    if level == "system" and grouping != "none":
        raise ValueError("the system level has one value per system and cannot be grouped: grouping='none'")
    unknown = set(coefficients) - set(ALL_COEFFICIENTS)
    if unknown or resamples < 0 or not 0 < confidence < 1:
        raise ValueError(
            f"coefficients are among {ALL_COEFFICIENTS}, resamples >= 0, 0 < confidence < 1; "
            f"given {tuple(coefficients)}, {resamples}, {confidence}"
        )
    x = float_column(metric, "metric")
    y = float_column(human, "human", len(x))
    pairs = _complete_pairs(
        x, y, item, system, bootstrap.cluster, (tuple(coefficients), unit, resamples, bootstrap.seed, nan_rule)
    )
    if interval == "jackknife":
        pairs = pairs.without_each_system() if resamples else pairs
    route = _route(pairs, level, grouping)
    none = np.full(min(resamples, 1), np.nan)
    clusters = pairs.resampled()
    turns = [_route(turn, level, grouping) for turn in pairs.left_out_in_turn()] if interval == "bca" else []
    estimates = {}
    for name, point in route.points.items():
        drawn = route.replicates.get(name, none)
        if interval == "jackknife":
            estimates[name] = with_jackknife(point, drawn if resamples else np.empty(0), confidence)
        elif interval == "bca":
            left_out = [turn.replicates.get(name, none) for turn in turns]
            estimates[name] = with_bca_interval(point, drawn, left_out, clusters=clusters, confidence=confidence)
        else:
            estimates[name] = with_interval(point, drawn, clusters=clusters, confidence=confidence)
    return Correlations(
        estimates=estimates, level=level, grouping=grouping, bootstrap=unit, nan_rule=nan_rule,
        resamples=resamples, seed=bootstrap.seed, confidence=confidence, n_rows=len(x), n_pairs=len(pairs.metric),
        n_missing_metric=int((~np.isfinite(x)).sum()), n_missing_human=int((~np.isfinite(y)).sum()),
        n_items=pairs.n_items, n_systems=pairs.n_systems, n_clusters=pairs.n_clusters, n_groups=route.n_groups,
        undefined_groups=route.undefined_groups,
        undefined_resamples={name: int(np.isnan(values).sum()) for name, values in route.replicates.items()},
        interval=interval,
    )  # fmt: skip


def _default_unit(level: Level, interval: Interval) -> ResamplingUnit:
    if interval == "jackknife":
        return "systems"
    return "both" if level == "system" else "inputs"


def resample_correlation(
    metric: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    *,
    settings: CorrelationSettings = DEFAULT_SETTINGS,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> tuple[Estimate, FloatArray, dict[str, int]]:
    """Return one coefficient of `correlate` without its interval, its replicates (resamples,), and the number of
    resampled units.

    `metric`, `human`, `item`, `system`, `settings`, `bootstrap`: as in `correlate`; `confidence` is not used.

    At the system level without `resampling_unit` both systems and items are resampled. Over the same complete rows
    and under the same seed, replicates of two metrics are paired."""
    refuse_options(settings, "interval")
    unit = settings.resampling_unit or _default_unit(settings.level, "percentile")
    _check(level=settings.level, grouping=settings.grouping, nan_rule=settings.nan_rule, resampling_unit=unit)
    x = float_column(metric, "metric")
    y = float_column(human, "human", len(x))
    name = settings.coefficient
    drawn = ((name,), unit, bootstrap.resamples, bootstrap.seed, settings.nan_rule)
    pairs = _complete_pairs(x, y, item, system, bootstrap.cluster, drawn)
    route = _route(pairs, settings.level, settings.grouping)
    return route.points[name], route.replicates.get(name, np.empty(0)), pairs.resampled()


def left_out_systems(
    metric: ArrayLike, human: ArrayLike, item: ArrayLike, system: ArrayLike, coefficient: Coefficient
) -> tuple[Estimate, FloatArray]:
    """Return a coefficient of the systems' means without its interval, and its values (n,) without each of the n
    systems."""
    x = float_column(metric, "metric")
    y = float_column(human, "human", len(x))
    pairs = _complete_pairs(x, y, item, system, None, ((coefficient,), "systems", 1, 0, "drop"))
    route = _system_level(pairs.without_each_system())
    return route.points[coefficient], route.replicates.get(coefficient, np.empty(0))


def _route(pairs: _Pairs, level: Level, grouping: Grouping) -> _Route:
    if level == "system":
        return _system_level(pairs)
    return _ungrouped(pairs) if grouping == "none" else _grouped(pairs, grouping)


def _complete_pairs(
    x: FloatArray,
    y: FloatArray,
    item: ArrayLike,
    system: ArrayLike,
    cluster: ArrayLike | None,
    settings: tuple[tuple[Coefficient, ...], ResamplingUnit, int, int, NanRule],
) -> _Pairs:
    n = len(x)
    complete = np.isfinite(x) & np.isfinite(y)
    item_codes, item_labels = encode(identifiers(item, "item", n)[complete], "item")
    system_codes, system_labels = encode(identifiers(system, "system", n)[complete], "system")
    cluster_of_item, n_clusters = np.arange(len(item_labels)), len(item_labels)
    if cluster is not None:
        codes, labels = encode(identifiers(cluster, "cluster", n)[complete], "cluster")
        cluster_of_item, n_clusters = parents(item_codes, codes, len(item_labels), "cluster"), len(labels)
    return _Pairs(
        x[complete], y[complete], item_codes, system_codes, cluster_of_item,
        len(item_labels), len(system_labels), n_clusters, *settings,
    )  # fmt: skip


def _check(**chosen: str) -> None:
    for name, value in chosen.items():
        if value not in _CHOICES[name]:
            raise ValueError(f"{name} is one of {', '.join(_CHOICES[name])}, not '{value}'")


def _ungrouped(pairs: _Pairs) -> _Route:
    reason = undefined_reason(pairs.metric, pairs.human)
    n = len(pairs.metric)
    if reason:
        return _Route({name: Estimate.undefined(reason, n) for name in pairs.wanted}, {})
    points = {name: Estimate.point(VALUES[name](pairs.metric, pairs.human), n) for name in pairs.wanted}
    if not pairs.can_resample:
        return _Route(points, {})
    kernel = WeightedCoefficients(pairs.metric, pairs.human, pairs.wanted)
    parts: list[dict[str, FloatArray]] = []
    cluster = pairs.cluster
    for _, items, systems in iterate_draws(*pairs.draws(), pairs.resamples, n):
        weights = _row_weights(items, cluster, systems, pairs.system)
        parts.append(kernel(weights))
    return _Route(points, _joined(parts))


def _row_weights(
    items: FloatArray | None, cluster: IntArray, systems: FloatArray | None, system: IntArray
) -> FloatArray:
    if items is None:
        assert systems is not None, "a bootstrap draws items or systems"
        return np.take(systems, system, axis=0)
    weights = np.take(items, cluster, axis=0)
    if systems is not None:
        weights *= np.take(systems, system, axis=0)
    return weights


def _grouped(pairs: _Pairs, grouping: Grouping) -> _Route:
    by_item = grouping == "item"
    group, n_groups = (pairs.item, pairs.n_items) if by_item else (pairs.system, pairs.n_systems)
    grouped = GroupedCoefficients(pairs.metric, pairs.human, group, n_groups, pairs.wanted)
    undefined = grouped.undefined_counts()
    whole = grouped(np.ones((len(group), 1)))
    # Weight of each group in the average of a resample: its own multiplicity, while the multiplicities of the other
    # side act within the groups. Repeating a whole group does not change its coefficient.
    counted = grouped.eligible if pairs.nan_rule == "zero" else grouped.reasons == 0
    points: dict[Coefficient, Estimate] = {}
    for name in pairs.wanted:
        n_counted = int(counted.sum())
        if n_counted == 0:
            points[name] = Estimate.undefined(_no_group(grouping, n_groups, undefined))
        else:
            points[name] = Estimate.point(float(np.nan_to_num(whole[name][counted, 0]).mean()), n_counted)
    if not pairs.can_resample or not counted.any():
        return _Route(points, {}, n_groups, undefined)
    parts: list[dict[str, FloatArray]] = []
    cluster = pairs.cluster
    for size, items, systems in iterate_draws(*pairs.draws(), pairs.resamples, len(group)):
        outer, inner = (items, systems) if by_item else (systems, items)
        outer_code = pairs.cluster_of_item if by_item else np.arange(pairs.n_systems)
        times = np.ones((n_groups, size)) if outer is None else outer[outer_code]
        if inner is None:
            values = {str(name): np.broadcast_to(whole[name], times.shape) for name in pairs.wanted}
        else:
            weights = inner[pairs.system if by_item else cluster]
            values = grouped(weights)
            if pairs.nan_rule == "zero":
                times = times * (np.asarray(summing_matrix(group, n_groups) @ weights) > 0)
        parts.append({name: _average(values[name][counted], times[counted], pairs.nan_rule) for name in pairs.wanted})
    return _Route(points, _joined(parts), n_groups, undefined)


def _average(values: FloatArray, times: FloatArray, nan_rule: NanRule) -> FloatArray:
    """Return the mean over groups (axis 0) with multiplicities; an undefined one counts as 0 or is left out."""
    defined = ~np.isnan(values)
    counts = times if nan_rule == "zero" else times * defined
    total = counts.sum(axis=0)
    sums = np.einsum("gb,gb->b", np.where(defined, values, 0.0), times)
    return np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > 0)


def _no_group(grouping: Grouping, n_groups: int, undefined: dict[str, int]) -> str:
    if n_groups == 0:
        return "there is no pair of a metric score and a human score"
    parts = ", ".join(f"{count}: {reason}" for reason, count in undefined.items())
    return f"no {grouping} has a defined coefficient ({parts})"


def _system_level(pairs: _Pairs) -> _Route:
    cells = pairs.cluster * pairs.n_systems + pairs.system
    shape = (pairs.n_clusters, pairs.n_systems)
    tables = [
        np.bincount(cells, weights=column, minlength=shape[0] * shape[1]).reshape(shape)
        for column in (np.ones(len(cells)), pairs.metric, pairs.human)
    ]
    counts, sums_m, sums_h = tables
    with np.errstate(divide="ignore", invalid="ignore"):
        metric = snap(sums_m.sum(axis=0) / counts.sum(axis=0))
        human = snap(sums_h.sum(axis=0) / counts.sum(axis=0))
    n = pairs.n_systems
    reason = undefined_reason(metric, human)
    if reason:
        reason = reason.replace("3 pairs", "3 systems")
        return _Route({name: Estimate.undefined(reason, n) for name in pairs.wanted}, {})
    points = {name: Estimate.point(VALUES[name](metric, human), n) for name in pairs.wanted}
    if not pairs.can_resample:
        return _Route(points, {})
    parts: list[dict[str, FloatArray]] = []
    for size, items, systems in iterate_draws(*pairs.draws(), pairs.resamples, max(shape[0], n * n)):
        drawn = np.ones((shape[0], size)) if items is None else items
        present = drawn.T @ counts
        kept = present > 0
        divisor = np.where(kept, present, 1.0)
        # A system without outputs in the resample gets weight 0, and the overall mean as a finite value.
        mean_m = snap(np.where(kept, (drawn.T @ sums_m) / divisor, metric.mean()))
        mean_h = snap(np.where(kept, (drawn.T @ sums_h) / divisor, human.mean()))
        weights = kept.astype(np.float64) if systems is None else kept * systems.T
        result = group_coefficients(mean_m, mean_h, weights[:, :, None], pairs.wanted)
        parts.append({name: values[:, 0] for name, values in result.items()})
    return _Route(points, _joined(parts))


def _joined(parts: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
