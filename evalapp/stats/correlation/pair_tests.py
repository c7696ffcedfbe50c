"""Tests behind `significance`: p-values of all pairs of metrics on common rows, by exchanges, resamples or formula.

`significance` selects the common rows and derives ranks and letters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, encode, parents, snap
from evalapp.stats.correlation.coefficients import Coefficient, pearson_value
from evalapp.stats.correlation.exchanges import exchange_systems, smallest_p
from evalapp.stats.correlation.meta_evaluation import (
    OTHER_SYSTEMS,
    THESE_SYSTEMS,
    CorrelationSettings,
    Grouping,
    Level,
    NanRule,
    correlate,
    resample_correlation,
)
from evalapp.stats.correlation.paired import williams
from evalapp.stats.correlation.pairs import best_epsilon, pair_table
from evalapp.stats.correlation.swaps import OutcomeSwaps, PearsonSwaps, RankSwaps, Swaps, SystemSwaps
from evalapp.stats.correlation.weighted import standardise
from evalapp.stats.resampling.bootstrap import MIN_CLUSTERS, Bootstrap, resampled_sums
from evalapp.stats.resampling.exchanges import SwapDraws

#: Exchanged units (names of Deutsch, Dror and Roth 2021): scores of whole systems (PERM-SYSTEMS), of groups of items
#: with all their outputs (PERM-INPUTS), of single outputs (PERM-BOTH). "permutation" is the first at the system level
#: and the second elsewhere.
Test: TypeAlias = Literal["permutation", "perm-systems", "perm-inputs", "perm-both", "williams", "bootstrap"]
Compared: TypeAlias = Coefficient | Literal["acc-eq"]
Adjustment: TypeAlias = Literal["holm", "none"]

TESTS: tuple[Test, ...] = ("permutation", "perm-systems", "perm-inputs", "perm-both", "williams", "bootstrap")
INDEPENDENT = "outputs like these, each taken as independent of the others"

# Differences below this are rounding.
_ROUNDING = 1e-12
# A pair is decided early once its p leaves this range (as at WMT). With Holm a small p is needed exactly, but a p above
# .2 after a block can no longer become significant.
_EARLY = {"none": (0.02, 0.5), "holm": (0.0, 0.2)}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that have all scores, sorted by item and system: scores (n, m) of the metrics."""

    scores: FloatArray
    human: FloatArray
    item: IntArray
    system: IntArray
    cluster: IntArray
    has_clusters: bool


@dataclass(frozen=True, slots=True)
class PairTests:
    """How all pairs of metrics are tested.

    coefficient: one of `ALL_COEFFICIENTS` or "acc-eq", the accuracy of pairs within items (`grouping` "item"; "none"
        compares all outputs, "system" the outputs of the same system) with each metric's own threshold of ties, fitted
        on these data. `level`, `grouping`, `nan_rule` as in `CorrelationSettings`.
    test (Deutsch, Dror and Roth 2021, for the first three); p = (x + 1) / (k + 1), x = exchanges with a difference at
        least as large as the observed one; all pairs of metrics share the draws:

        - `perm-systems`, the meaning of `permutation` at the system level: the scores of whole systems are exchanged,
          all 2^n exchanges where there are few (`exchanges`). Speaks about systems and items like these.
        - `perm-inputs`, the meaning of `permutation` elsewhere: scores are standardised, then A's and B's scores of a
          whole cluster (default: the item) are exchanged with probability 1/2. Speaks about these systems and items
          like these. With "acc-eq", whether a metric is right on a pair of outputs is exchanged. At the system level it
          finds differences far too often (docs/results/intervals.md) and serves only to recompute earlier tables.
        - `perm-both`: A's and B's score of single outputs are exchanged, which takes each for independent: too bold
          where an item or a system has several.
        - `bootstrap`: x = resamples of clusters (default items; at the system level also systems) with a difference
          <= 0.
        - `williams`: closed form, only Pearson over all outputs together; takes outputs for independent.
    k: number of exchanges or resamples; seed: seed of the random draws.
    alpha: level of the tests; adjust: `holm` over all pairs (two-sided) or `none` (one-sided).
    block: above 0, a pair stops after that many draws, or a multiple, once its p is decided: below .02 or above .5
        without adjustment, above .2 with Holm's, which needs small p in full.
    """

    level: Level = "segment"
    grouping: Grouping = "none"
    coefficient: Compared = "pearson"
    nan_rule: NanRule = "drop"
    test: Test = "permutation"
    k: int = 1000
    seed: int = 13
    alpha: float = 0.05
    adjust: Adjustment = "holm"
    block: int = 0


@dataclass(frozen=True, slots=True)
class PairResults:
    """p (m, m) and resamples (m, m) of the metrics in the order of their values; `units`: number of exchanged or
    resampled units by name ({"groups of items": 60})."""

    p: FloatArray
    k: IntArray
    units: Mapping[str, int]


def resolve_test(test: Test, level: Level) -> Test:
    """Return the test that "permutation" means at this level; other tests unchanged."""
    if test != "permutation":
        return test
    return "perm-systems" if level == "system" else "perm-inputs"


def describe_population(test: Test, level: Level) -> str:
    """Return the systems and items to which a test generalises."""
    if test in ("williams", "perm-both"):
        return INDEPENDENT
    drawn = test == "perm-systems" or (test == "bootstrap" and level == "system")
    return OTHER_SYSTEMS if drawn else THESE_SYSTEMS


def find_smallest_p(settings: PairTests, units: Mapping[str, int]) -> float:
    """Return the smallest two-sided p that a test with these units can give; nan for Williams' test.

    n units have 2^n exchanges, so a share of 2^-n of the drawn ones is the observed order itself."""
    if settings.test == "williams" or not units:
        return math.nan
    n, drawn = min(units.values()), 2.0 / (settings.k + 1)
    if settings.test == "perm-systems":
        return smallest_p(n, settings.k)
    return drawn if settings.test == "bootstrap" else min(1.0, max(drawn, smallest_exchange_p(n)))


def smallest_exchange_p(n: int) -> float:
    """Return the smallest two-sided p over all exchanges of n units."""
    return 2.0 * 2.0**-n


def explain_few_units(units: Mapping[str, int]) -> str:
    """Return why there are too few units for a bootstrap test, else ""."""
    few = [format_count(count, what) for what, count in units.items() if count < MIN_CLUSTERS]
    return f"not tested: {' and '.join(few)} only, a bootstrap needs at least {MIN_CLUSTERS}" if few else ""


def format_count(n: int, what: str) -> str:
    """Return a count with its noun, such as `3 groups of items` or `1 item`."""
    first, *rest = what.split(" ")
    return " ".join([str(n), first.removesuffix("s") if n == 1 else first, *rest])


def select_columns(table: Table, places: Sequence[int]) -> Table:
    scores = table.scores[:, list(places)]
    return Table(scores, table.human, table.item, table.system, table.cluster, table.has_clusters)


def select_epsilons(epsilons: Sequence[float], places: Sequence[int]) -> tuple[float, ...]:
    return tuple(epsilons[place] for place in places) if epsilons else ()


def _group(table: Table, grouping: Grouping) -> IntArray | None:
    return {"none": None, "item": table.item, "system": table.system}[grouping]


def _pair_groups(table: Table, grouping: Grouping) -> IntArray:
    group = _group(table, grouping)
    return np.zeros(len(table.human), dtype=np.int64) if group is None else group


def compute_values(table: Table, settings: PairTests) -> tuple[FloatArray, list[float]]:
    """Return the coefficient of every metric, and its tie threshold, if any."""
    values, epsilons = np.full(table.scores.shape[1], np.nan), []
    for place, column in enumerate(table.scores.T):
        if settings.coefficient == "acc-eq":
            pairs = pair_table(column, table.human, _pair_groups(table, settings.grouping))
            epsilons.append(best_epsilon(pairs))
            if pairs.n_items:
                values[place] = float(pairs.by_item(epsilons[-1]).mean())
        else:
            correlations = correlate(
                column, table.human, table.item, table.system, settings=_correlation(settings),
                bootstrap=Bootstrap(resamples=0),
            )  # fmt: skip
            values[place] = correlations[settings.coefficient].value
    return values, epsilons


def test_pairs(table: Table, values: FloatArray, epsilons: Sequence[float], settings: PairTests) -> PairResults:
    if settings.test == "williams":
        return _williams(table)
    if settings.test == "bootstrap":
        return _bootstrap(table, epsilons, settings)
    if settings.test == "perm-systems":
        return _exchange_systems(table, settings)
    return _permutation(table, values, epsilons, settings)


def _exchange_systems(table: Table, settings: PairTests) -> PairResults:
    sizes = np.bincount(table.system).astype(np.float64)
    means = [snap(np.bincount(table.system, weights=column) / sizes) for column in (*table.scores.T, table.human)]
    coefficient: Any = settings.coefficient
    p, made = exchange_systems(
        np.stack(means[:-1], axis=1), means[-1], coefficient, k=settings.k, seed=settings.seed, block=settings.block
    )  # fmt: skip
    return PairResults(p, made, {"systems": len(sizes)})


def _permutation(table: Table, values: FloatArray, epsilons: Sequence[float], settings: PairTests) -> PairResults:
    engine, unit = build_engine(table, epsilons, settings)
    return compare_by_exchanges(engine, unit, values, settings)


def compare_by_exchanges(engine: Swaps, unit: IntArray, values: FloatArray, settings: PairTests) -> PairResults:
    """Return p of all pairs of metrics from exchanges of their units; `values` are the metrics' coefficients, best
    first."""
    n_units = int(unit.max(initial=0)) + 1
    draws = SwapDraws(n_units, settings.seed)
    whole = engine.by_unit or len(unit) == n_units
    m = len(values)
    pairs = [(one, two) for one in range(m) for two in range(one + 1, m)]
    observed = np.array([values[one] - values[two] for one, two in pairs])
    above, below, drawn = (np.zeros(len(pairs), dtype=np.int64) for _ in range(3))
    undefined = np.zeros(len(pairs), dtype=np.int64)
    open_ = np.arange(len(pairs))
    block = settings.block or settings.k
    for done in range(0, settings.k, block):
        size = min(block, settings.k - done)
        for start in range(0, size, engine.chunk):
            select_columns = draws.take(min(engine.chunk, size - start))
            swapped = select_columns if whole else select_columns[unit]
            deltas = engine(swapped, [pairs[place] for place in open_])
            target = observed[open_, None]
            above[open_] += (deltas >= target - _ROUNDING).sum(axis=1)
            below[open_] += (-deltas >= -target - _ROUNDING).sum(axis=1)
            undefined[open_] += np.isnan(deltas).sum(axis=1)
            drawn[open_] += select_columns.shape[1]
        p = (above + 1) / (drawn - undefined + 1)
        low, high = _EARLY[settings.adjust]
        open_ = open_[(p[open_] >= low) & (p[open_] <= high)] if settings.block else open_
        if len(open_) == 0:
            break
    table_p, table_k = np.full((m, m), np.nan), np.zeros((m, m), dtype=np.int64)
    defined = drawn - undefined
    for place, (one, two) in enumerate(pairs):
        table_k[one, two] = table_k[two, one] = drawn[place]
        if defined[place]:
            table_p[one, two] = (above[place] + 1) / (defined[place] + 1)
            table_p[two, one] = (below[place] + 1) / (defined[place] + 1)
    singly = "pairs of outputs" if settings.coefficient == "acc-eq" else "outputs"
    return PairResults(table_p, table_k, {singly if settings.test == "perm-both" else "groups of items": n_units})


def build_engine(table: Table, epsilons: Sequence[float], settings: PairTests) -> tuple[Swaps, IntArray]:
    """Return the engine, and the unit of exchange of each row (or pair of outputs).

    `table`: complete rows; `epsilons`: tie thresholds of the metrics, for `acc-eq` only; `settings`: the tests."""
    singly = settings.test == "perm-both"
    if settings.coefficient == "acc-eq":
        right, weight, cluster = _outcomes(table, epsilons, settings.grouping, singly)
        return OutcomeSwaps(right, weight), cluster
    unit = np.arange(len(table.human)) if singly else encode(table.cluster, "cluster")[0]
    scores = np.stack([standardise(column) for column in table.scores.T], axis=1)
    if settings.level == "system":
        return SystemSwaps(scores, table.human, table.system, settings.coefficient), unit
    group = _group(table, settings.grouping)
    if settings.coefficient == "pearson":
        return PearsonSwaps(scores, table.human, group, settings.nan_rule, unit), unit
    return RankSwaps(scores, table.human, group, settings.nan_rule, settings.coefficient), unit


def _outcomes(
    table: Table, epsilons: Sequence[float], grouping: Grouping, singly: bool
) -> tuple[BoolArray, FloatArray, IntArray]:
    groups = _pair_groups(table, grouping)
    right = []
    for column, epsilon in zip(table.scores.T, epsilons, strict=True):
        pairs = pair_table(column, table.human, groups)
        right.append(pairs.correct(epsilon))
    cluster = np.arange(len(pairs.weight)) if singly else _clusters_of_pairs(table, groups)
    return np.stack(right, axis=1), pairs.weight, cluster


def _clusters_of_pairs(table: Table, groups: IntArray) -> IntArray:
    pairs = pair_table(table.human, table.human, groups, cluster=_one_cluster(table, groups))
    return encode(pairs.cluster[pairs.group], "cluster")[0]


def _one_cluster(table: Table, groups: IntArray) -> IntArray:
    """Return the cluster of every row's group.

    Raises `ColumnError` if the rows of a group lie in different clusters, because then pairs belong to no single
    cluster."""
    return parents(groups, table.cluster, int(groups.max(initial=0)) + 1, "cluster")[groups]


def _bootstrap(table: Table, epsilons: Sequence[float], settings: PairTests) -> PairResults:
    if settings.coefficient == "acc-eq":
        return compare_by_replicates(*_accuracy_replicates(table, epsilons, settings))
    drawn = Bootstrap(cluster=table.cluster, resamples=settings.k, seed=settings.seed)
    result = [
        resample_correlation(
            column, table.human, table.item, table.system, settings=_correlation(settings), bootstrap=drawn
        )
        for column in table.scores.T
    ]
    return compare_by_replicates(np.stack([drawn for _, drawn, _ in result]), result[0][2])


def _correlation(settings: PairTests) -> CorrelationSettings:
    assert settings.coefficient != "acc-eq", "accuracies are no coefficient of `correlate`"
    return CorrelationSettings(
        settings.level, settings.grouping, (settings.coefficient,), nan_rule=settings.nan_rule
    )  # fmt: skip


def compare_by_replicates(drawn: FloatArray, units: Mapping[str, int]) -> PairResults:
    """Return p of all pairs of metrics from their values (m, k) in the same resamples.

    None with fewer than `MIN_CLUSTERS` units: resamples of 2 to 4 groups often agree, whatever the metrics."""
    m = len(drawn)
    p, k = np.full((m, m), np.nan), np.zeros((m, m), dtype=np.int64)
    if min(units.values()) < MIN_CLUSTERS:
        return PairResults(p, k, units)
    k += drawn.shape[1]
    np.fill_diagonal(k, 0)
    for one in range(m):
        difference = drawn[one] - drawn
        defined = (~np.isnan(difference)).sum(axis=1)
        p[one] = np.where(defined > 0, ((difference <= _ROUNDING).sum(axis=1) + 1) / (defined + 1), np.nan)
    np.fill_diagonal(p, np.nan)
    return PairResults(p, k, units)


def _accuracy_replicates(
    table: Table, epsilons: Sequence[float], settings: PairTests
) -> tuple[FloatArray, Mapping[str, int]]:
    """Return accuracies (m, k) in resamples of clusters of groups, and the number of clusters."""
    groups = _pair_groups(table, settings.grouping)
    cluster = _one_cluster(table, groups) if table.has_clusters else groups
    columns = []
    for column, epsilon in zip(table.scores.T, epsilons, strict=True):
        pairs = pair_table(column, table.human, groups, cluster=cluster)
        columns.append(pairs.by_item(epsilon))
    code, labels = encode(pairs.cluster, "cluster")
    units = {"groups of items": len(labels)}
    if len(labels) < 2:
        return np.empty((len(columns), 0)), units
    stacked = np.stack([*columns, np.ones_like(columns[0])], axis=1)
    sums = resampled_sums(stacked, code, len(labels), resamples=settings.k, seed=settings.seed)
    return np.asarray((sums[:, :-1] / sums[:, -1:]).T), units


def _williams(table: Table) -> PairResults:
    m, n = table.scores.shape[1], len(table.human)
    own = [pearson_value(column, table.human) for column in table.scores.T]
    p = np.full((m, m), np.nan)
    for one in range(m):
        for two in range(m):
            if one == two:
                continue
            between = pearson_value(table.scores[:, one], table.scores[:, two])
            p[one, two] = 0.5 if between > 1 - _ROUNDING else williams(own[one], own[two], between, n)
    return PairResults(p, np.zeros((m, m), dtype=np.int64), {})
