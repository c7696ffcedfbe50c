"""Which of several metrics follows people better: tests of all pairs in one pass, rank clusters, letters.

Two metrics with the interval of their difference are in `paired`; the exchanges behind the permutation test in `swaps`.

Explained in docs/explanation/statistics/significance.md#all-pairs-of-evaluators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, encode, float_column, identifiers, parents
from evalapp.stats.core.common_rows import CONSTANT, NO_SCORE, CommonRows, find_common_rows
from evalapp.stats.core.multiple_tests import compact_letters, holm, needed_draws, rank_clusters
from evalapp.stats.correlation.coefficients import ALL_COEFFICIENTS, MIN_PAIRS
from evalapp.stats.correlation.exchanges import MIN_SYSTEMS, few_systems
from evalapp.stats.correlation.meta_evaluation import Grouping, Level, NanRule
from evalapp.stats.correlation.pair_tests import (
    TESTS,
    Adjustment,
    Compared,
    Found,
    PairTests,
    Table,
    Test,
    by_replicates,
    counted,
    exchanged,
    few_drawn,
    in_order,
    named,
    population_of,
    smallest_of,
    smallest_of_exchanges,
    taken,
    test_pairs,
    values_of,
)
from evalapp.stats.correlation.swaps import OutcomeSwaps
from evalapp.stats.resampling.bootstrap import resampled_sums

__all__ = ["MIN_SYSTEMS", "AllPairs", "compare_all", "compare_verdicts"]

NO_COEFFICIENT = "has no defined coefficient"
#: Below so many groups the bootstrap finds too many differences: of two equally good metrics at the 5 % level in .17,
#: .10 and .08 of 400 simulated data sets with 5, 10 and 20 groups of 6 outputs.
_FEW_DRAWN = 30
_NOT_TWO = "not tested: there are not two evaluators with a value to be compared"
_SINGLY = "pairs of outputs were exchanged one by one, which finds differences too easily: name clusters, such as items"


@dataclass(frozen=True, slots=True)
class AllPairs:
    """All metrics against each other, best first (equal ones by name); undefined ones last, in the order given.

    `p[a, b]` is the one-sided p-value that metric a is better than metric b, nan where it was not tested. `p_holm`:
    which of two is better the data say, so their p is two-sided, twice the one-sided one of the better (at most 1),
    adjusted over all pairs; nan in the other direction. `rank` numbers the clusters of metrics: a metric opens a
    new one when some metric already in the present one beats it. `letters`: metrics that share a letter are not told
    apart ("" = not tested). Both use p_holm, with which equal metrics are told apart with probability `alpha` at most,
    or, where `adjust` is "none", the one-sided p as WMT does: then any two equal metrics are with probability twice
    `alpha`.
    Neither has letters where no p of the test could be small enough. `population` says which systems and items the test
    speaks about, `smallest_p` is the smallest two-sided p, before Holm's adjustment, that it can give (nan: Williams').
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
    coefficient: Compared | Literal["verdicts"]
    level: Level
    grouping: Grouping
    nan_rule: NanRule
    adjust: Adjustment
    alpha: float
    k: int
    seed: int
    block: int
    epsilons: tuple[float, ...] = ()
    population: str = ""
    smallest_p: float = math.nan

    @property
    def signature(self) -> str:
        """The settings as one line."""
        early = f"|block:{self.block}" if self.block else ""
        return (
            f"test:{self.test}|coef:{self.coefficient}|level:{self.level}|grouping:{self.grouping}|nan:{self.nan_rule}"
            f"|k:{self.k}{early}|seed:{self.seed}|adjust:{self.adjust}|sides:{2 if self.adjust == 'holm' else 1}"
            f"|alpha:{self.alpha:g}"
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe: every field and the signature; nan becomes None."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        for name in ("p", "p_holm"):
            plain[name] = [[_finite(value) for value in row] for row in getattr(self, name).tolist()]
        plain |= {name: [_finite(value) for value in getattr(self, name)] for name in ("values", "epsilons")}
        plain["k_each"] = self.k_each.tolist()
        plain["smallest_p"] = _finite(self.smallest_p)
        return plain | {"signature": self.signature}


DEFAULT_TESTS = PairTests()


def compare_all(
    metrics: Mapping[str, ArrayLike],
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    tests: PairTests = DEFAULT_TESTS,
) -> AllPairs:
    """Test every metric against every other on the outputs that all of them and people have scored.

    `metrics`: (n,) scores by name, higher = better; `human`, `item`, `system` as in `correlate`. `cluster`: (n,) group
    of each row, exchanged or drawn whole; default: the item.

    Metrics without a score, with one score for all, or with too few outputs in common with the others are left out
    before common rows are counted; the note says so. With Holm's adjustment over m (m - 1) / 2 pairs no p below alpha
    can come of k resamples unless k is large enough: `needed_draws`; the note says so. g groups have 2^g exchanges, so
    no two-sided p is below 2 / 2^g, and no p of drawn exchanges is given below that. Fewer than 6 systems are not
    tested at the system level, fewer than 5 groups (or systems) not by the bootstrap, and there are no letters where
    the smallest p is too large.

    Raises ValueError for unknown options, `ColumnError` for columns that do not fit.
    """
    _check(tests)
    singly = tests.coefficient == "acc-eq" and tests.test == "perm-both"
    settings = replace(tests, test=named(tests.test, tests.level))
    table, names, empty, notes = _complete(metrics, human, item, system, cluster, settings.level)
    values, epsilons = values_of(table, settings)
    n_systems = len(np.unique(table.system))
    too_few = settings.level == "system" and n_systems < MIN_SYSTEMS
    why_not = f"not tested: {few_systems(n_systems)}" if too_few else ""

    def find(places: Sequence[int]) -> Found:
        if singly:
            notes.append(_SINGLY)
        return test_pairs(taken(table, places), values[places], in_order(epsilons, places), settings)

    return _all_pairs(
        values, names, empty, settings, notes, find, len(table.human), epsilons=epsilons, why_not=why_not,
        n_systems=n_systems,
    )  # fmt: skip


def compare_verdicts(
    right: Mapping[str, ArrayLike], cluster: ArrayLike, *, tests: PairTests = DEFAULT_TESTS
) -> AllPairs:
    """Every metric against every other by its share of right verdicts on pairs of outputs that people compared.

    `right`: (p,) by name, how far a metric is right on each pair (`verdicts.outcomes`: 1, 0, 1/2 for equal scores, nan
    without a score); all are compared on the pairs that none of them lacks. What is exchanged with probability 1/2
    (PERM-INPUTS), or drawn with replacement, are whole clusters (the groups of the pairs' items): this speaks about
    these systems and items like these. p, adjustment, letters and order as in `compare_all`; of `tests` only test,
    k, seed, alpha and adjust apply.
    """
    tests = replace(tests, level="segment", grouping="none", coefficient="acc-eq", nan_rule="drop", block=0)
    settings = replace(tests, test=named(tests.test, "segment"))
    if settings.test not in ("perm-inputs", "bootstrap") or tests.adjust not in ("holm", "none"):
        raise ValueError(f"test is permutation or bootstrap and adjust holm or none, not {tests.test}, {tests.adjust}")
    if tests.k < 1 or not 0 < tests.alpha < 1:
        raise ValueError(f"k >= 1 and 0 < alpha < 1; given {tests.k}, {tests.alpha}")
    columns = {name: float_column(column, name) for name, column in right.items()}
    n = len(next(iter(columns.values()), ()))
    common = find_common_rows(list(columns.values()), np.ones(n, dtype=np.bool_), least=1, allow_constant=True)
    names, empty, notes = _parted(list(columns), common, "has no verdict")
    stacked = np.stack([columns[name] for name in names], axis=1) if names else np.empty((n, 0))
    whole = common.rows
    some = np.isfinite(stacked).any(axis=1)
    if lost := int(some.sum() - whole.sum()) if names else 0:
        notes.append(f"{lost} of {int(some.sum())} pairs lack a score of some metric and are left out")
    unit, labels = encode(identifiers(cluster, "cluster", len(stacked))[whole], "cluster")
    stacked = stacked[whole]
    values = stacked.mean(axis=0) if len(stacked) else np.full(len(names), np.nan)

    def find(places: Sequence[int]) -> Found:
        chosen = stacked[:, places]
        if settings.test == "perm-inputs":
            weight = np.full(len(chosen), 1.0 / len(chosen))
            return exchanged(OutcomeSwaps(chosen, weight), unit, values[places], settings)
        sums = resampled_sums(
            np.column_stack([chosen, np.ones(len(chosen))]), unit, len(labels), resamples=tests.k, seed=tests.seed
        )  # fmt: skip
        return by_replicates(np.asarray((sums[:, :-1] / sums[:, -1:]).T), {"groups of items": len(labels)})

    found = _all_pairs(values, names, empty, settings, notes, find, len(stacked))
    return replace(found, coefficient="verdicts")


def _all_pairs(
    values: FloatArray,
    names: Sequence[str],
    empty: Sequence[str],
    settings: PairTests,
    notes: list[str],
    find: Callable[[Sequence[int]], Found],
    n_rows: int,
    *,
    epsilons: Sequence[float] = (),
    why_not: str = "",
    n_systems: int = 0,
) -> AllPairs:
    """The metrics in order with their p, as `find` gives it of those that have a value, by their places; none where
    there is a reason not to test."""
    defined = [place for place in range(len(names)) if not math.isnan(values[place])]
    defined.sort(key=lambda place: (-round(float(values[place]), 12), names[place]))
    undefined = [place for place in range(len(names)) if math.isnan(values[place])]
    notes += [f"{names[place]} {NO_COEFFICIENT}" for place in undefined]
    m = len(names) + len(empty)
    units: Mapping[str, int] = {"systems": n_systems} if settings.test == "perm-systems" else {}
    p, adjusted = np.full((m, m), np.nan), np.full((m, m), np.nan)
    k_each = np.zeros((m, m), dtype=np.int64)
    why_not = why_not or ("" if len(defined) > 1 else _NOT_TWO)
    if not why_not:
        found = find(defined)
        units, inner = found.units, slice(0, len(defined))
        # Drawn exchanges of few units may give less than all exchanges of them would, by chance.
        p[inner, inner] = np.maximum(found.p, np.nan_to_num(smallest_of(settings, units)) / 2)
        k_each[inner, inner] = found.k
        adjusted[inner, inner] = _holm(p[inner, inner])
        if settings.test == "bootstrap":
            why_not = few_drawn(units)
    smallest = smallest_of(settings, {} if why_not and settings.test == "bootstrap" else units)
    notes += [why_not] if why_not else _limits(settings, smallest, len(defined), settings.alpha, units)
    used = adjusted if settings.adjust == "holm" else p
    beats: BoolArray = np.nan_to_num(used, nan=1.0) <= settings.alpha
    order = defined + undefined
    is_open = not why_not and not _beyond(settings, smallest, len(defined), settings.alpha)
    tested = len(defined) if is_open else 0
    letters = compact_letters(beats[:tested, :tested]) + ("",) * (m - tested)
    return AllPairs(
        names=tuple(names[place] for place in order) + tuple(empty),
        values=tuple(float(values[place]) for place in order) + (math.nan,) * len(empty),
        p=p, p_holm=adjusted, rank=rank_clusters(beats), letters=letters, k_used=int(k_each.max(initial=0)),
        note="; ".join(notes), k_each=k_each, n_rows=n_rows, test=settings.test, coefficient=settings.coefficient,
        level=settings.level, grouping=settings.grouping, nan_rule=settings.nan_rule, adjust=settings.adjust,
        alpha=settings.alpha, k=settings.k, seed=settings.seed, block=settings.block,
        epsilons=in_order(epsilons, order) + (math.nan,) * (len(empty) if epsilons else 0),
        population=population_of(settings.test, settings.level), smallest_p=smallest,
    )  # fmt: skip


def _beyond(settings: PairTests, smallest: float, m: int, alpha: float) -> bool:
    """Whether no difference of any of the m metrics could be significant, whatever the data."""
    pairs = m * (m - 1) // 2 if settings.adjust == "holm" else 1
    one_sided = 1 if settings.adjust == "holm" else 2
    return m > 1 and smallest * pairs / one_sided > alpha


def _limits(settings: PairTests, smallest: float, m: int, alpha: float, units: Mapping[str, int]) -> list[str]:
    """What keeps p from being small or right: few units drawn, few exchanges (compare fewer metrics, or more units), or
    few draws (draw more)."""
    if settings.test == "williams":
        return []
    n, what = min((count, what) for what, count in units.items())
    notes = []
    if settings.test == "bootstrap" and n < _FEW_DRAWN:
        notes.append(f"the test rests on {n} {what} only, so its p may be too small")
    least = smallest if settings.adjust == "holm" else smallest / 2
    if settings.test != "bootstrap" and smallest <= smallest_of_exchanges(n):
        if not _beyond(settings, smallest, m, alpha):
            return notes
        pairs = m * (m - 1) // 2 if settings.adjust == "holm" else 1
        by_holm = f", {pairs} pairs by Holm none below {min(1.0, least * pairs):.2g}" if pairs > 1 else ""
        way = f"fewer evaluators, or more {what}" if pairs > 1 else f"on more {what}"
        return [
            *notes,
            f"all {1 << n} exchanges of {counted(n, what)} give no p below {least:.2g}{by_holm}: compare {way}",
        ]
    needed = needed_draws(m, alpha) if settings.adjust == "holm" else 0
    if settings.k >= needed:
        return notes
    return [*notes, f"k = {settings.k} cannot reach {alpha:g} after Holm's adjustment of so many pairs: k >= {needed}"]


def _parted(names: Sequence[str], common: CommonRows, without: str) -> tuple[list[str], list[str], list[str]]:
    """Names of the columns that are used and of those that are not, with notes on why."""
    notes = [
        f"{names[place]} {without if reason == NO_SCORE else NO_COEFFICIENT if reason == CONSTANT else reason}"
        for place, reason in sorted(common.reasons.items())
    ]
    empty = [names[place] for place in sorted(common.reasons)]
    return [names[place] for place in common.used], empty, notes


def _check(settings: PairTests) -> None:
    if settings.test not in TESTS or settings.adjust not in ("holm", "none"):
        raise ValueError(
            f"test is one of {', '.join(TESTS)} and adjust holm or none, not {settings.test}, {settings.adjust}"
        )
    if settings.coefficient not in (*ALL_COEFFICIENTS, "acc-eq"):
        raise ValueError(f"coefficient is among {ALL_COEFFICIENTS} or acc-eq, not '{settings.coefficient}'")
    if settings.k < 1 or settings.block < 0 or not 0 < settings.alpha < 1:
        raise ValueError(
            f"k >= 1, block >= 0 and 0 < alpha < 1; given {settings.k}, {settings.block}, {settings.alpha}"
        )
    ungrouped = settings.level == "segment" and settings.grouping == "none"
    if settings.test == "williams" and not (settings.coefficient == "pearson" and ungrouped):
        raise ValueError("Williams' test is for Pearson over all outputs together: another test, or grouping='none'")
    if settings.coefficient == "acc-eq" and settings.level == "system":
        raise ValueError("acc-eq compares outputs: level='segment', or a coefficient for the systems' means")
    if settings.test == "perm-systems" and settings.level != "system":
        raise ValueError("perm-systems exchanges systems' means: level='system', or test='perm-inputs'")


def _complete(
    metrics: Mapping[str, ArrayLike],
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    cluster: ArrayLike | None,
    level: Level,
) -> tuple[Table, list[str], list[str], list[str]]:
    """The common rows, names of the metrics that are compared and of those that cannot be, and notes on what was left
    out."""
    y = float_column(human, "human")
    columns = {name: float_column(values, name, len(y)) for name, values in metrics.items()}
    rated = np.isfinite(y)
    unit, least = None, MIN_PAIRS
    if level == "system":
        unit, least = encode(identifiers(system, "system", len(y)), "system")[0], MIN_SYSTEMS
    common = find_common_rows(list(columns.values()), rated, unit, least=least, what="systems")
    names, empty, notes = _parted(list(columns), common, NO_SCORE)
    scores = np.stack([columns[name] for name in names], axis=1) if names else np.empty((len(y), 0))
    whole = common.rows
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
    table = Table(scores[order], y[order], items[order], systems[order], clusters[order], cluster is not None)
    return table, names, empty, notes


def _holm(p: FloatArray) -> FloatArray:
    """Two-sided and adjusted over the pairs better over worse; there is none in the other direction."""
    m = len(p)
    one, two = np.triu_indices(m, 1)
    raw = [None if math.isnan(value) else min(1.0, 2 * value) for value in p[one, two].tolist()]
    adjusted = np.full((m, m), np.nan)
    adjusted[one, two] = [math.nan if value is None else value for value in holm(raw)]
    return adjusted


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
