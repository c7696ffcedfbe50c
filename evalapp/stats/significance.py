"""Which of several metrics follows people better: tests of all pairs in one pass, rank clusters, letters.

Two metrics with the interval of their difference are in `paired`; the exchanges behind the permutation test in `swaps`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.coding import BoolArray, FloatArray, IntArray, encode, float_column, identifiers, parents
from evalapp.stats.correlation import ALL_COEFFICIENTS, Coefficient, pearson_value
from evalapp.stats.letters import compact_letters, needed_draws, rank_clusters
from evalapp.stats.meta_evaluation import Grouping, Level, NanRule, correlate, replicates_of
from evalapp.stats.paired import holm, williams
from evalapp.stats.pairs import best_epsilon, pair_table
from evalapp.stats.resampling import resampled_sums
from evalapp.stats.swaps import OutcomeSwaps, PearsonSwaps, RankSwaps, SwapDraws, Swaps, SystemSwaps
from evalapp.stats.weighted import standardise

Test: TypeAlias = Literal["perm-both", "williams", "bootstrap"]
Compared: TypeAlias = Coefficient | Literal["acc-eq"]
Adjustment: TypeAlias = Literal["holm", "none"]

TESTS: tuple[Test, ...] = ("perm-both", "williams", "bootstrap")
#: With fewer systems a ranking at the system level is not tested.
MIN_SYSTEMS = 6

# Differences below this are rounding.
_ROUNDING = 1e-12
# A pair is decided early when its p leaves this range (WMT).
_CLEAR, _HOPELESS = 0.02, 0.5


@dataclass(frozen=True, slots=True)
class AllPairs:
    """All metrics against each other, best first (equal ones by name); undefined ones last, in the order given.

    `p[a, b]` is the one-sided p-value that metric a is better than metric b, nan where it was not tested; `p_holm` the
    same adjusted over all pairs, each in the direction observed (1 in the other). `rank` numbers the clusters of
    EVALUATORS 7.3: a metric opens a new one when some metric already in the present one beats it. `letters`: metrics
    that share a letter do not differ ("" = not tested). Both use p_holm, or p where `adjust` is "none", at `alpha`.
    `k_used` is the largest number of resamples of a pair, `k_each` that of every pair. `epsilons` are the tie
    thresholds of "acc-eq". `n_rows` outputs have all scores.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    p: FloatArray
    p_holm: FloatArray
    rank: tuple[int, ...]
    letters: tuple[str, ...]
    k_used: int
    note: str
    k_each: IntArray
    n_rows: int
    test: Test
    coefficient: Compared
    level: Level
    grouping: Grouping
    nan_rule: NanRule
    adjust: Adjustment
    alpha: float
    k: int
    seed: int
    block: int
    epsilons: tuple[float, ...] = ()

    @property
    def signature(self) -> str:
        """The settings as one line."""
        early = f"|block:{self.block}" if self.block else ""
        return (
            f"test:{self.test}|coef:{self.coefficient}|level:{self.level}|grouping:{self.grouping}|nan:{self.nan_rule}"
            f"|k:{self.k}{early}|seed:{self.seed}|adjust:{self.adjust}|alpha:{self.alpha:g}"
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe: every field and the signature; nan becomes None."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        for name in ("p", "p_holm"):
            plain[name] = [[_finite(value) for value in row] for row in getattr(self, name).tolist()]
        plain |= {"values": [_finite(value) for value in self.values], "k_each": self.k_each.tolist()}
        return plain | {"signature": self.signature}


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows that have all scores, in the order of items and systems: scores (n, m) of the metrics."""

    scores: FloatArray
    human: FloatArray
    item: IntArray
    system: IntArray
    cluster: IntArray
    has_clusters: bool


@dataclass(frozen=True, slots=True)
class _Settings:
    level: Level
    grouping: Grouping
    coefficient: Compared
    nan_rule: NanRule
    test: Test
    k: int
    seed: int
    block: int


@dataclass(frozen=True, slots=True)
class _Found:
    """p (m, m) and resamples (m, m) of the metrics in the order of their values."""

    p: FloatArray
    k: IntArray


def compare_all(
    metrics: Mapping[str, ArrayLike],
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    *,
    level: Level = "segment",
    grouping: Grouping = "none",
    coefficient: Compared = "pearson",
    cluster: ArrayLike | None = None,
    test: Test = "perm-both",
    k: int = 1000,
    seed: int = 13,
    alpha: float = 0.05,
    adjust: Adjustment = "holm",
    nan_rule: NanRule = "drop",
    block: int = 0,
) -> AllPairs:
    """Every metric against every other on the outputs that all of them and people have scored (EVALUATORS 7.3).

    `metrics`: (n,) scores by name, higher = better; `human`, `item`, `system` as in `correlate`, and so are `level`,
    `grouping` and `nan_rule`. `coefficient` is one of `ALL_COEFFICIENTS` or "acc-eq", the accuracy of pairs within
    items (`grouping` "item"; "none" compares all outputs, "system" those of one system) with each metric's own
    threshold of ties, fitted on these data.

    - `perm-both` (Deutsch et al. 2021): scores are standardised, then A's and B's score of an output are exchanged
      with probability 1/2; p = (x + 1) / (k + 1), x = exchanges with a difference at least as large as the observed
      one. At the system level outputs are exchanged before they are averaged. With "acc-eq" what is exchanged is
      whether a metric is right on a pair of outputs. All pairs of metrics share the draws. With `cluster` whole
      clusters are exchanged. `block` > 0 stops a pair after that many draws, or a multiple, once its p is below .02
      or above .5.
    - `bootstrap`: x = resamples of clusters (default items; at the system level also systems) with a difference <= 0.
    - `williams`: closed form, only Pearson over all outputs together; takes outputs for independent.

    With Holm's adjustment over m (m - 1) / 2 pairs no p below alpha can come of k resamples unless k is large enough:
    `needed_draws`; the note says so. Fewer than 6 systems are not tested at the system level.
    """
    settings = _Settings(level, grouping, coefficient, nan_rule, test, k, seed, block)
    _check(settings, alpha, adjust)
    table, names, empty, notes = _complete(metrics, human, item, system, cluster)
    values, epsilons = _values(table, settings)
    defined = [place for place in range(len(names)) if not math.isnan(values[place])]
    defined.sort(key=lambda place: (-round(float(values[place]), 12), names[place]))
    undefined = [place for place in range(len(names)) if math.isnan(values[place])]
    notes += [f"{names[place]} has no defined coefficient" for place in undefined]
    m = len(names) + len(empty)
    p, adjusted = np.full((m, m), np.nan), np.full((m, m), np.nan)
    k_each = np.zeros((m, m), dtype=np.int64)
    n_systems = len(np.unique(table.system))
    too_few = level == "system" and n_systems < MIN_SYSTEMS
    if too_few:
        notes.append(f"not tested: {n_systems} systems rank nothing, at least {MIN_SYSTEMS} are needed")
    elif len(defined) > 1:
        found = _test(_taken(table, defined), values[defined], _epsilons(epsilons, defined), settings)
        inner = slice(0, len(defined))
        p[inner, inner], k_each[inner, inner] = found.p, found.k
        adjusted[inner, inner] = _holm(found.p)
        needed = needed_draws(len(defined), alpha) if adjust == "holm" and test != "williams" else 0
        if k < needed:
            notes.append(f"k = {k} cannot reach {alpha:g} after Holm's adjustment of so many pairs: k >= {needed}")
    used = adjusted if adjust == "holm" else p
    beats: BoolArray = np.nan_to_num(used, nan=1.0) <= alpha
    order = defined + undefined
    tested = 0 if too_few else len(defined)
    letters = compact_letters(beats[:tested, :tested]) + ("",) * (m - tested)
    return AllPairs(
        names=tuple(names[place] for place in order) + tuple(empty),
        values=tuple(float(values[place]) for place in order) + (math.nan,) * len(empty),
        p=p, p_holm=adjusted, rank=rank_clusters(beats), letters=letters, k_used=int(k_each.max(initial=0)),
        note="; ".join(notes), k_each=k_each, n_rows=len(table.human), test=test, coefficient=coefficient, level=level,
        grouping=grouping, nan_rule=nan_rule, adjust=adjust, alpha=alpha, k=k, seed=seed, block=block,
        epsilons=_epsilons(epsilons, order) + (math.nan,) * (len(empty) if epsilons else 0),
    )  # fmt: skip


def _check(settings: _Settings, alpha: float, adjust: str) -> None:
    if settings.test not in TESTS or adjust not in ("holm", "none"):
        raise ValueError(f"test is one of {', '.join(TESTS)} and adjust holm or none, not {settings.test}, {adjust}")
    if settings.coefficient not in (*ALL_COEFFICIENTS, "acc-eq"):
        raise ValueError(f"coefficient is among {ALL_COEFFICIENTS} or acc-eq, not '{settings.coefficient}'")
    if settings.k < 1 or settings.block < 0 or not 0 < alpha < 1:
        raise ValueError(f"k >= 1, block >= 0 and 0 < alpha < 1; given {settings.k}, {settings.block}, {alpha}")
    ungrouped = settings.level == "segment" and settings.grouping == "none"
    if settings.test == "williams" and not (settings.coefficient == "pearson" and ungrouped):
        raise ValueError("Williams' test is for Pearson over all outputs together: another test, or grouping='none'")
    if settings.coefficient == "acc-eq" and settings.level == "system":
        raise ValueError("acc-eq compares outputs: level='segment', or a coefficient for the systems' means")


def _complete(
    metrics: Mapping[str, ArrayLike],
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    cluster: ArrayLike | None,
) -> tuple[_Table, list[str], list[str], list[str]]:
    """The common rows, names with and without any score, and notes on what was left out."""
    y = float_column(human, "human")
    columns = {name: float_column(values, name, len(y)) for name, values in metrics.items()}
    rated = np.isfinite(y)
    names = [name for name, column in columns.items() if np.isfinite(column[rated]).any()]
    empty = [name for name in columns if name not in names]
    scores = np.stack([columns[name] for name in names], axis=1) if names else np.empty((len(y), 0))
    whole = rated & np.isfinite(scores).all(axis=1)
    notes = [f"{name} has no score" for name in empty]
    lost = int(rated.sum() - whole.sum())
    if names and lost:
        notes.append(f"{lost} of {int(rated.sum())} outputs lack a score of some metric and are left out")
    items, labels = encode(identifiers(item, "item", len(y))[whole], "item")
    systems, _ = encode(identifiers(system, "system", len(y))[whole], "system")
    clusters = np.arange(len(labels))[items]
    if cluster is not None:
        clusters, _ = encode(identifiers(cluster, "cluster", len(y))[whole], "cluster")
        parents(items, clusters, len(labels), "cluster")
    scores, y = scores[whole], y[whole]
    order = np.lexsort((*scores.T, y, systems, items))
    table = _Table(scores[order], y[order], items[order], systems[order], clusters[order], cluster is not None)
    return table, names, empty, notes


def _taken(table: _Table, places: Sequence[int]) -> _Table:
    scores = table.scores[:, list(places)]
    return _Table(scores, table.human, table.item, table.system, table.cluster, table.has_clusters)


def _epsilons(epsilons: Sequence[float], places: Sequence[int]) -> tuple[float, ...]:
    return tuple(epsilons[place] for place in places) if epsilons else ()


def _group(table: _Table, grouping: Grouping) -> IntArray | None:
    return {"none": None, "item": table.item, "system": table.system}[grouping]


def _pair_groups(table: _Table, grouping: Grouping) -> IntArray:
    group = _group(table, grouping)
    return np.zeros(len(table.human), dtype=np.int64) if group is None else group


def _values(table: _Table, settings: _Settings) -> tuple[FloatArray, list[float]]:
    """The coefficient of every metric, and its threshold of ties where there is one."""
    values, epsilons = np.full(table.scores.shape[1], np.nan), []
    for place, column in enumerate(table.scores.T):
        if settings.coefficient == "acc-eq":
            pairs = pair_table(column, table.human, _pair_groups(table, settings.grouping))
            epsilons.append(best_epsilon(pairs))
            if pairs.n_items:
                values[place] = float(pairs.by_item(epsilons[-1]).mean())
        else:
            found = correlate(
                column, table.human, table.item, table.system, level=settings.level, grouping=settings.grouping,
                coefficients=[settings.coefficient], nan_rule=settings.nan_rule, resamples=0,
            )  # fmt: skip
            values[place] = found[settings.coefficient].value
    return values, epsilons


def _test(table: _Table, values: FloatArray, epsilons: Sequence[float], settings: _Settings) -> _Found:
    if settings.test == "williams":
        return _williams(table)
    if settings.test == "bootstrap":
        return _bootstrap(table, epsilons, settings)
    return _permutation(table, values, epsilons, settings)


def _permutation(table: _Table, values: FloatArray, epsilons: Sequence[float], settings: _Settings) -> _Found:
    engine, unit = _engine(table, epsilons, settings)
    draws = SwapDraws(int(unit.max(initial=0)) + 1, settings.seed)
    whole = len(unit) == int(unit.max(initial=0)) + 1
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
            taken = draws.take(min(engine.chunk, size - start))
            swapped = taken if whole else taken[unit]
            deltas = engine(swapped, [pairs[place] for place in open_])
            target = observed[open_, None]
            above[open_] += (deltas >= target - _ROUNDING).sum(axis=1)
            below[open_] += (-deltas >= -target - _ROUNDING).sum(axis=1)
            undefined[open_] += np.isnan(deltas).sum(axis=1)
            drawn[open_] += taken.shape[1]
        p = (above + 1) / (drawn - undefined + 1)
        open_ = open_[(p[open_] >= _CLEAR) & (p[open_] <= _HOPELESS)] if settings.block else open_
        if len(open_) == 0:
            break
    table_p, table_k = np.full((m, m), np.nan), np.zeros((m, m), dtype=np.int64)
    defined = drawn - undefined
    for place, (one, two) in enumerate(pairs):
        table_k[one, two] = table_k[two, one] = drawn[place]
        if defined[place]:
            table_p[one, two] = (above[place] + 1) / (defined[place] + 1)
            table_p[two, one] = (below[place] + 1) / (defined[place] + 1)
    return _Found(table_p, table_k)


def _engine(table: _Table, epsilons: Sequence[float], settings: _Settings) -> tuple[Swaps, IntArray]:
    """The engine, and the unit of exchange of each row (or pair of outputs)."""
    rows = np.arange(len(table.human))
    if settings.coefficient == "acc-eq":
        right, weight, cluster = _outcomes(table, epsilons, settings.grouping)
        return OutcomeSwaps(right, weight), cluster if table.has_clusters else np.arange(len(weight))
    unit = encode(table.cluster, "cluster")[0] if table.has_clusters else rows
    scores = np.stack([standardise(column) for column in table.scores.T], axis=1)
    if settings.level == "system":
        return SystemSwaps(scores, table.human, table.system, settings.coefficient), unit
    group = _group(table, settings.grouping)
    if settings.coefficient == "pearson":
        return PearsonSwaps(scores, table.human, group, settings.nan_rule), unit
    return RankSwaps(scores, table.human, group, settings.nan_rule, settings.coefficient), unit


def _outcomes(table: _Table, epsilons: Sequence[float], grouping: Grouping) -> tuple[BoolArray, FloatArray, IntArray]:
    groups = _pair_groups(table, grouping)
    right = []
    for column, epsilon in zip(table.scores.T, epsilons, strict=True):
        pairs = pair_table(column, table.human, groups)
        right.append(pairs.correct(epsilon))
    cluster = _clusters_of_pairs(table, groups) if table.has_clusters else np.arange(len(pairs.weight))
    return np.stack(right, axis=1), pairs.weight, cluster


def _clusters_of_pairs(table: _Table, groups: IntArray) -> IntArray:
    pairs = pair_table(table.human, table.human, groups, cluster=_one_cluster(table, groups))
    return encode(pairs.cluster[pairs.group], "cluster")[0]


def _one_cluster(table: _Table, groups: IntArray) -> IntArray:
    """The cluster of every row's group; `ColumnError` where a group has rows of several (no pair is in one cluster)."""
    return parents(groups, table.cluster, int(groups.max(initial=0)) + 1, "cluster")[groups]


def _bootstrap(table: _Table, epsilons: Sequence[float], settings: _Settings) -> _Found:
    m = table.scores.shape[1]
    if settings.coefficient == "acc-eq":
        drawn = _accuracy_replicates(table, epsilons, settings)
    else:
        drawn = np.stack([
            replicates_of(
                column, table.human, table.item, table.system, coefficient=settings.coefficient, level=settings.level,
                grouping=settings.grouping, cluster=table.cluster, resamples=settings.k, seed=settings.seed,
                nan_rule=settings.nan_rule,
            )[1]
            for column in table.scores.T
        ])  # fmt: skip
    p, k = np.full((m, m), np.nan), np.full((m, m), drawn.shape[1], dtype=np.int64)
    np.fill_diagonal(k, 0)
    for one in range(m):
        difference = drawn[one] - drawn
        defined = (~np.isnan(difference)).sum(axis=1)
        p[one] = np.where(defined > 0, ((difference <= _ROUNDING).sum(axis=1) + 1) / (defined + 1), np.nan)
    np.fill_diagonal(p, np.nan)
    return _Found(p, k)


def _accuracy_replicates(table: _Table, epsilons: Sequence[float], settings: _Settings) -> FloatArray:
    """Accuracies (m, k) in resamples of clusters of groups."""
    groups = _pair_groups(table, settings.grouping)
    cluster = _one_cluster(table, groups) if table.has_clusters else groups
    columns = []
    for column, epsilon in zip(table.scores.T, epsilons, strict=True):
        pairs = pair_table(column, table.human, groups, cluster=cluster)
        columns.append(pairs.by_item(epsilon))
    code, labels = encode(pairs.cluster, "cluster")
    if len(labels) < 2:
        return np.empty((len(columns), 0))
    stacked = np.stack([*columns, np.ones_like(columns[0])], axis=1)
    sums = resampled_sums(stacked, code, len(labels), resamples=settings.k, seed=settings.seed)
    return np.asarray((sums[:, :-1] / sums[:, -1:]).T)


def _williams(table: _Table) -> _Found:
    m, n = table.scores.shape[1], len(table.human)
    own = [pearson_value(column, table.human) for column in table.scores.T]
    p = np.full((m, m), np.nan)
    for one in range(m):
        for two in range(m):
            if one == two:
                continue
            between = pearson_value(table.scores[:, one], table.scores[:, two])
            p[one, two] = 0.5 if between > 1 - _ROUNDING else williams(own[one], own[two], between, n)
    return _Found(p, np.zeros((m, m), dtype=np.int64))


def _holm(p: FloatArray) -> FloatArray:
    """Adjusted over the pairs better over worse; the other direction is 1."""
    m = len(p)
    one, two = np.triu_indices(m, 1)
    raw = [None if math.isnan(value) else value for value in p[one, two].tolist()]
    adjusted = np.full((m, m), np.nan)
    adjusted[one, two] = [math.nan if value is None else value for value in holm(raw)]
    adjusted[two, one] = np.where(np.isnan(adjusted[one, two]), np.nan, 1.0)
    return adjusted


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
