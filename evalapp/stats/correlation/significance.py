"""Significance tests between several metrics: all pairs in one pass, rank clusters, letters.

The difference of two metrics with its interval is in `paired`; the exchanges of the permutation test are in `swaps`.

Explained in docs/explanation/statistics/significance.md#all-pairs-of-evaluators."""

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
from evalapp.stats.core.options import refuse_options
from evalapp.stats.correlation.coefficients import ALL_COEFFICIENTS, MIN_PAIRS
from evalapp.stats.correlation.exchanges import MIN_SYSTEMS, few_systems
from evalapp.stats.correlation.meta_evaluation import Grouping, Level, NanRule
from evalapp.stats.correlation.pair_tests import (
    TESTS,
    Adjustment,
    Compared,
    PairResults,
    PairTests,
    Table,
    Test,
    compare_by_exchanges,
    compare_by_replicates,
    compute_values,
    describe_population,
    explain_few_units,
    find_smallest_p,
    format_count,
    resolve_test,
    select_columns,
    select_epsilons,
    smallest_exchange_p,
    test_pairs,
)
from evalapp.stats.correlation.swaps import OutcomeSwaps
from evalapp.stats.resampling.bootstrap import resampled_sums

__all__ = ["MIN_SYSTEMS", "AllPairs", "compare_all", "compare_verdicts"]

NO_COEFFICIENT = "has no defined coefficient"
#: With fewer groups the bootstrap is liberal: at the 5 % level it rejected for two equally good metrics in .17, .10 and
#: .08 of 400 simulated data sets with 5, 10 and 20 groups of 6 outputs.
_FEW_DRAWN = 30
_NOT_TWO = "not tested: there are not two evaluators with a value to be compared"
_SINGLY = "pairs of outputs were exchanged one by one, which finds differences too easily: name clusters, such as items"


@dataclass(frozen=True, slots=True)
class AllPairs:
    """All metrics against each other, best first (ties by name); undefined ones last, in the order given.

    `p[a, b]`: one-sided p-value that metric a is better than metric b, nan if not tested. `p_holm`: two-sided p (twice
    the one-sided p of the better metric, at most 1), adjusted by Holm over all pairs; nan in the other direction.
    `rank`: clusters of metrics; a metric opens a new one if a metric in the current one beats it. `letters`: metrics
    that share a letter are not significantly different ("" = not tested). Both use p_holm, so that equal metrics differ
    with probability at most `alpha`, or, if `adjust` is "none", the one-sided p as WMT does: any two equal metrics then
    differ with probability twice `alpha`. Without any p small enough there are no letters.

    `population`: systems and items to which the test generalises. `smallest_p`: smallest two-sided p, before Holm's
    adjustment, that the test can give (nan: Williams'). `k_used`: largest number of resamples of a pair, `k_each`
    that of every pair. `epsilons`: tie thresholds of "acc-eq". `n_rows`: outputs with all scores."""

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
        """Settings as one line."""
        early = f"|block:{self.block}" if self.block else ""
        return (
            f"test:{self.test}|coef:{self.coefficient}|level:{self.level}|grouping:{self.grouping}|nan:{self.nan_rule}"
            f"|k:{self.k}{early}|seed:{self.seed}|adjust:{self.adjust}|sides:{2 if self.adjust == 'holm' else 1}"
            f"|alpha:{self.alpha:g}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return every field and the signature as JSON-safe values; nan becomes None."""
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
    """Test every metric against every other on the outputs that have all their scores and a human score.

    `metrics`: (n,) scores by name, higher = better; `human`, `item`, `system` as in `correlate`. `cluster`: (n,) group
    of each row, exchanged or resampled whole; default: the item.

    Metrics without a score, with a single score for all outputs, or with too few outputs in common with the others are
    left out first; a note lists them. With Holm's adjustment over m (m - 1) / 2 pairs, k must be at least
    `needed_draws` for any p below alpha; a note warns. g groups have 2^g exchanges, so no two-sided p is below 2 / 2^g,
    and p-values of drawn exchanges are truncated there. There is no test with fewer than 6 systems at the system level,
    nor by bootstrap with fewer than 5 groups (or systems), and no letters if the smallest p is too large.

    Raises ValueError for unknown options, `ColumnError` for columns that do not fit.

    >>> human, item, system = [1, 2, 3, 4] * 6, np.repeat(np.arange(6), 4), list("wxyz") * 6
    >>> compare_all({"good": human, "bad": human[::-1]}, human, item, system, tests=PairTests(k=99)).letters
    ('a', 'b')
    """
    _check(tests)
    singly = tests.coefficient == "acc-eq" and tests.test == "perm-both"
    settings = replace(tests, test=resolve_test(tests.test, tests.level))
    table, names, empty, notes = _complete(metrics, human, item, system, cluster, settings.level)
    values, epsilons = compute_values(table, settings)
    n_systems = len(np.unique(table.system))
    too_few = settings.level == "system" and n_systems < MIN_SYSTEMS
    why_not = f"not tested: {few_systems(n_systems)}" if too_few else ""

    def find(places: Sequence[int]) -> PairResults:
        if singly:
            notes.append(_SINGLY)
        return test_pairs(select_columns(table, places), values[places], select_epsilons(epsilons, places), settings)

    return _all_pairs(
        values, names, empty, settings, notes, find, len(table.human), epsilons=epsilons, why_not=why_not,
        n_systems=n_systems,
    )  # fmt: skip


def compare_verdicts(
    right: Mapping[str, ArrayLike], cluster: ArrayLike, *, tests: PairTests = DEFAULT_TESTS
) -> AllPairs:
    """Test every metric against every other by its share of correct verdicts on pairs of outputs that people compared.

    `right`: (p,) by name, correctness on each pair (`verdicts.outcomes`: 1, 0, 1/2 for equal scores, nan without a
    score); all are compared on the pairs with all scores. Whole clusters (`cluster`: (p,), the groups of the pairs'
    items) are exchanged with probability 1/2 (PERM-INPUTS) or resampled, which generalises to other items for these
    systems. p, adjustment, letters and order as in `compare_all`.

    Raises ValueError for unknown options and for `tests` other than test, k, seed, alpha and adjust; `ColumnError` for
    columns that do not fit."""
    refuse_options(tests, "level", "grouping", "coefficient", "nan_rule", "block")
    settings = replace(tests, coefficient="acc-eq", test=resolve_test(tests.test, "segment"))
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
        notes.append(f"{lost} of {int(some.sum())} pairs lack a score by at least one metric and are left out")
    unit, labels = encode(identifiers(cluster, "cluster", len(stacked))[whole], "cluster")
    stacked = stacked[whole]
    values = stacked.mean(axis=0) if len(stacked) else np.full(len(names), np.nan)

    def find(places: Sequence[int]) -> PairResults:
        chosen = stacked[:, places]
        if settings.test == "perm-inputs":
            weight = np.full(len(chosen), 1.0 / len(chosen))
            return compare_by_exchanges(OutcomeSwaps(chosen, weight), unit, values[places], settings)
        sums = resampled_sums(
            np.column_stack([chosen, np.ones(len(chosen))]), unit, len(labels), resamples=tests.k, seed=tests.seed
        )  # fmt: skip
        return compare_by_replicates(np.asarray((sums[:, :-1] / sums[:, -1:]).T), {"groups of items": len(labels)})

    result = _all_pairs(values, names, empty, settings, notes, find, len(stacked))
    return replace(result, coefficient="verdicts")


def _all_pairs(
    values: FloatArray,
    names: Sequence[str],
    empty: Sequence[str],
    settings: PairTests,
    notes: list[str],
    find: Callable[[Sequence[int]], PairResults],
    n_rows: int,
    *,
    epsilons: Sequence[float] = (),
    why_not: str = "",
    n_systems: int = 0,
) -> AllPairs:
    """Return the metrics in order with their p. `find` computes it for the metrics with a value, by their positions;
    there is none if there is a reason not to test."""
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
        result = find(defined)
        units, inner = result.units, slice(0, len(defined))
        # Drawn exchanges of few units may by chance give a smaller p than all exchanges.
        p[inner, inner] = np.maximum(result.p, np.nan_to_num(find_smallest_p(settings, units)) / 2)
        k_each[inner, inner] = result.k
        adjusted[inner, inner] = _holm(p[inner, inner])
        if settings.test == "bootstrap":
            why_not = explain_few_units(units)
    smallest = find_smallest_p(settings, {} if why_not and settings.test == "bootstrap" else units)
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
        epsilons=select_epsilons(epsilons, order) + (math.nan,) * (len(empty) if epsilons else 0),
        population=describe_population(settings.test, settings.level), smallest_p=smallest,
    )  # fmt: skip


def _beyond(settings: PairTests, smallest: float, m: int, alpha: float) -> bool:
    """Return whether no difference between the m metrics can be significant, whatever the data."""
    pairs = m * (m - 1) // 2 if settings.adjust == "holm" else 1
    one_sided = 1 if settings.adjust == "holm" else 2
    return m > 1 and smallest * pairs / one_sided > alpha


def _limits(settings: PairTests, smallest: float, m: int, alpha: float, units: Mapping[str, int]) -> list[str]:
    """Return notes on limits of p: few units (compare fewer metrics, or more units) or few draws (draw more)."""
    if settings.test == "williams":
        return []
    n, what = min((count, what) for what, count in units.items())
    notes = []
    if settings.test == "bootstrap" and n < _FEW_DRAWN:
        notes.append(f"the test rests on {n} {what} only, so its p may be too small")
    least = smallest if settings.adjust == "holm" else smallest / 2
    if settings.test != "bootstrap" and smallest <= smallest_exchange_p(n):
        if not _beyond(settings, smallest, m, alpha):
            return notes
        pairs = m * (m - 1) // 2 if settings.adjust == "holm" else 1
        by_holm = f", {pairs} pairs by Holm none below {min(1.0, least * pairs):.2g}" if pairs > 1 else ""
        way = f"fewer evaluators, or more {what}" if pairs > 1 else f"on more {what}"
        return [
            *notes,
            f"all {1 << n} exchanges of {format_count(n, what)} give no p below {least:.2g}{by_holm}: compare {way}",
        ]
    needed = needed_draws(m, alpha) if settings.adjust == "holm" else 0
    if settings.k >= needed:
        return notes
    return [
        *notes,
        f"k = {settings.k} cannot reach {alpha:g} after Holm's adjustment for that number of pairs: k >= {needed}",
    ]


def _parted(names: Sequence[str], common: CommonRows, without: str) -> tuple[list[str], list[str], list[str]]:
    """Return the names of used and unused columns, with notes on the reasons."""
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
    """Return the common rows, the names of compared and excluded metrics, and notes on excluded rows and metrics."""
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
        notes.append(f"{lost} of {int(rated.sum())} outputs lack a score by at least one metric and are left out")
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
    """Return two-sided p adjusted over the pairs better over worse; nan in the other direction."""
    m = len(p)
    one, two = np.triu_indices(m, 1)
    raw = [None if math.isnan(value) else min(1.0, 2 * value) for value in p[one, two].tolist()]
    adjusted = np.full((m, m), np.nan)
    adjusted[one, two] = [math.nan if value is None else value for value in holm(raw)]
    return adjusted


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
