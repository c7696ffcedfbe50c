"""Rank systems by human judgements (mean rating, win rate, Turing M1 share), with intervals from one paired bootstrap.

Rating models (Glicko-2, Bradley-Terry) are in `comparisons`. Explained in
docs/explanation/statistics/human-scores.md#means-of-systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.core.coding import (
    VERDICTS,
    BoolArray,
    FloatArray,
    IntArray,
    encode,
    encode_pair,
    float_column,
    identifiers,
    snap,
    verdict_codes,
)  # fmt: skip
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.ranking.connectivity import LARGEST_PART, NEVER_COMPARED, find_connectivity, largest_component
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    MIN_CLUSTERS,
    Bootstrap,
    resampled_sums,
    spread_shares_of_all,
    tails,
    with_interval,
)

CannotDecide: TypeAlias = Literal["drop", "tie"]
M1Unit: TypeAlias = Literal["judgement", "output"]

# Number of items that must agree entirely for p < .05 in a two-sided sign test: 2 / 2^6 = .031.
_LEAST_ALIKE = 6
NO_JUDGEMENT = "no judgement of this system"
_A, _B, _TIE, _BOTH_BAD, _CANNOT_DECIDE = range(5)


@dataclass(frozen=True, slots=True)
class SystemScore:
    """Row of a system in a ranking.

    `rank` is 1 + the number of strictly better systems; `rank_low`..`rank_high` is its interval over the resamples
    (best and worst rank, both in favour of the wider interval on ties). `tier` numbers the rank sets: systems of
    different tiers have rank intervals that do not overlap; all within a tier are linked by overlaps. `n_ratings`
    counts judgements, `n_outputs` (= `estimate.n`) the distinct outputs behind them; `shares` gives the parts of the
    judgements by verdict. `is_ranked` is False if no comparison links the system with the ranked ones, so that it
    may have any rank. A ranked system without a value has a rank but no finite rating."""

    system: Any
    estimate: Estimate
    n_outputs: int
    n_ratings: int
    rank: int
    rank_low: int
    rank_high: int
    tier: int
    shares: dict[str, float] = field(default_factory=dict)
    is_ranked: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return every field as JSON-safe values, the estimate by `Estimate.as_dict`."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"estimate": self.estimate.as_dict()}


@dataclass(frozen=True, slots=True)
class Ranking:
    """Systems from best to worst (undefined last, then by label), with the settings of the bootstrap.

    `totals` counts the judgements read and left out, such as ties, both_bad, cannot_decide and self. `extras` holds
    results of a single method (JSON-safe; see the function that ranks), `settings` its part of the signature."""

    method: str
    systems: tuple[SystemScore, ...]
    n_items: int
    n_clusters: int
    resamples: int
    seed: int
    confidence: float
    totals: dict[str, int] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    settings: str = ""

    @property
    def signature(self) -> str:
        """The settings as one line."""
        if self.settings:
            return f"method:{self.method}|{self.settings}|conf:{self.confidence:g}"
        return f"method:{self.method}|boot:inputs|resamples:{self.resamples}|seed:{self.seed}|conf:{self.confidence:g}"

    def as_dict(self) -> dict[str, Any]:
        """Return every field as JSON-safe values, the systems by `SystemScore.as_dict`, and the signature."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"systems": [row.as_dict() for row in self.systems], "signature": self.signature}


@dataclass(frozen=True, slots=True)
class _Shares:
    """Means of `points` over the rows of each system; rows belong to clusters."""

    method: str
    points: FloatArray
    system: IntArray
    cluster: IntArray
    labels: NDArray[Any]
    n_items: int
    n_clusters: int


def rank_by_mean(
    value: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    *,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    unknown: str = NO_JUDGEMENT,
) -> Ranking:
    """Rank systems by mean rating: the mean over raters of each output, then over the system's outputs.

    (n,) columns, one row per rating for a single aspect, nan = missing; a system without ratings has no value, with
    `unknown` as the reason. Bootstrap over clusters of items (default: the item), with the same draws for all systems.
    An output is (item, system); each checkpoint is a system of its own.

    A system with one cluster has no interval and may have any rank. With few clusters percentiles are too narrow:
    intervals of 95 % hold the true mean in 83 % of simulated data with 5 clusters, 90 % with 10, 92 % with 20, 94 %
    with 50, those of ranks in 92 to 100 % (5 systems, normal ratings, 1,000 data sets; docs/results/intervals.md).

    >>> ranking = rank_by_mean([5, 4, 2], ["i1", "i2", "i1"], ["bart", "bart", "t5"], bootstrap=Bootstrap(resamples=0))
    >>> [(str(row.system), round(row.estimate.value, 2)) for row in ranking.systems]
    [('bart', 4.5), ('t5', 2.0)]
    """
    values = float_column(value, "value")
    n = len(values)
    present = np.isfinite(values)
    systems, labels = encode(system, "system", n)
    items, clusters = _items_and_clusters(item, bootstrap.cluster, n)
    output, first = encode_pair(items[present], systems[present], len(labels))
    counts = np.bincount(output, minlength=len(first))
    means = np.bincount(output, weights=values[present], minlength=len(first)) / np.maximum(counts, 1)
    shares = _Shares(
        "mean", means, systems[present][first], clusters[present][first], labels,
        _distinct(items[present]), _distinct(clusters[present]),
    )  # fmt: skip
    n_outputs = np.bincount(shares.system, minlength=len(labels))
    n_ratings = np.bincount(systems[present], minlength=len(labels))
    totals = {"ratings": int(present.sum()), "missing": int(n - present.sum())}
    return _rank(shares, n_outputs, n_ratings, bootstrap, totals, unknown=dict.fromkeys(range(len(labels)), unknown))


def rank_by_win_rate(
    item: ArrayLike,
    system_a: ArrayLike,
    system_b: ArrayLike,
    verdict: ArrayLike,
    *,
    cannot_decide: CannotDecide = "drop",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Ranking:
    """Rank systems by win rate: the mean over comparisons of 1 for a win, 1/2 for a tie or `both_bad`, 0 for a loss.

    `item`, `system_a`, `system_b`: identifiers; `bootstrap`: settings of the intervals.

    (n,) columns, one row per judgement; `verdict` is one of `VERDICTS`. `cannot_decide` rows are left out, or count
    as ties. Comparisons of a system with itself are left out and counted in `totals["self"]`. Each system's `shares`
    give win, tie, both_bad, cannot_decide and loss as parts of its comparisons. Bootstrap as in `rank_by_mean`; win
    rates of 0 and 1 get the exact interval over items, which also determines their ranks (`spread_shares_of_all`).
    Only the largest part of the systems that comparisons link is ranked, because win rates against different
    opponents are not comparable. `extras["connectivity"]` lists the parts."""
    if cannot_decide not in ("drop", "tie"):
        raise ValueError(f"cannot_decide is 'drop' or 'tie', not '{cannot_decide}'")
    codes = verdict_codes(verdict)
    n = len(codes)
    both, labels = encode(
        np.concatenate([identifiers(system_a, "system_a", n), identifiers(system_b, "system_b", n)]), "system"
    )
    a, b = both[:n], both[n:]
    items, clusters = _items_and_clusters(item, bootstrap.cluster, n)
    totals = {"judgements": n, "self": int((a == b).sum())}
    totals |= {name: int((codes == code).sum()) for code, name in enumerate(VERDICTS) if code >= _TIE}
    used = (a != b) & ((codes != _CANNOT_DECIDE) | (cannot_decide == "tie"))
    a, b, codes, items, clusters = a[used], b[used], codes[used], items[used], clusters[used]
    points_a = np.where(codes == _A, 1.0, np.where(codes == _B, 0.0, 0.5))
    sides = np.concatenate([a, b])
    n_ratings = np.bincount(sides, minlength=len(labels))
    beats = np.zeros((len(labels), len(labels)), dtype=np.bool_)
    beats[a[points_a > 0], b[points_a > 0]] = True
    beats[b[points_a < 1], a[points_a < 1]] = True
    links = find_connectivity(beats, labels, n_ratings).parts_only()
    ranked = largest_component(beats, n_ratings)
    points, inside = np.concatenate([points_a, 1.0 - points_a]), ranked[sides]
    shares = _Shares(
        "win-rate", points[inside], sides[inside], np.concatenate([clusters, clusters])[inside], labels,
        _distinct(items[ranked[a]]), _distinct(clusters[ranked[a]]),
    )  # fmt: skip
    rates = np.bincount(sides, weights=points, minlength=len(labels)) / np.maximum(n_ratings, 1)
    unknown = {
        k: f"{NEVER_COMPARED}; it won {rates[k]:.3f} of its own comparisons"
        for k in np.flatnonzero(~ranked & (n_ratings > 0)).tolist()
    }
    _, first = encode_pair(np.concatenate([items, items]), sides, len(labels))
    n_outputs = np.bincount(sides[first], minlength=len(labels))
    won = np.concatenate([codes == _A, codes == _B])
    twice = np.concatenate([codes, codes])
    parts: dict[str, BoolArray] = {"win": won}
    parts |= {VERDICTS[code]: twice == code for code in (_TIE, _BOTH_BAD, _CANNOT_DECIDE)}
    parts["loss"] = np.concatenate([codes == _B, codes == _A])
    known = {name: _part(rows, sides, n_ratings) for name, rows in parts.items()}
    result = _rank(shares, n_outputs, n_ratings, bootstrap, totals, known, unknown)
    rows = tuple(row if row.is_ranked else replace(row, rank_low=1, rank_high=len(labels)) for row in result.systems)
    used = (
        "" if links.connected else f"boot:inputs|resamples:{bootstrap.resamples}|seed:{bootstrap.seed}|{LARGEST_PART}"
    )
    return replace(result, systems=rows, extras={"connectivity": links.as_dict()}, settings=used)


def rank_by_m1(
    item: ArrayLike,
    system: ArrayLike,
    verdict: ArrayLike,
    *,
    per: M1Unit = "judgement",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Ranking:
    """Rank systems by Turing M1 (Gu, Wu and Yu 2021): the share of judgements that a generation is at least as good as
    the reference.

    `item`, `system`: identifiers of the generation; `bootstrap`: settings of the intervals.

    (n,) columns, one row per judgement of a generation (side a) against a reference (side b): every verdict but `b`
    counts ("better", "cannot decide", ties). All systems are linked: each was compared with the reference.
    `per="output"` takes the majority of each output's judgements, an even split counting as better or equal.
    Bootstrap as in `rank_by_mean`."""
    if per not in ("judgement", "output"):
        raise ValueError(f"per is 'judgement' or 'output', not '{per}'")
    codes = verdict_codes(verdict)
    n = len(codes)
    systems, labels = encode(system, "system", n)
    items, clusters = _items_and_clusters(item, bootstrap.cluster, n)
    good = (codes != _B).astype(np.float64)
    output, first = encode_pair(items, systems, len(labels))
    n_ratings = np.bincount(systems, minlength=len(labels))
    n_outputs = np.bincount(systems[first], minlength=len(labels))
    parts: dict[str, BoolArray] = {"better": codes == _A, "worse": codes == _B}
    parts["undecided"] = ~(parts["better"] | parts["worse"])
    known = {name: _part(rows, systems, n_ratings) for name, rows in parts.items()}
    if per == "output":
        good = (np.bincount(output, weights=good) * 2 >= np.bincount(output)).astype(np.float64)
        systems, clusters = systems[first], clusters[first]
    shares = _Shares(f"m1-{per}", good, systems, clusters, labels, _distinct(items), _distinct(clusters))
    return _rank(shares, n_outputs, n_ratings, bootstrap, {"judgements": n}, known)


def _items_and_clusters(item: ArrayLike, cluster: ArrayLike | None, n: int) -> tuple[IntArray, IntArray]:
    items, _ = encode(item, "item", n)
    return (items, items) if cluster is None else (items, encode(cluster, "cluster", n)[0])


def _distinct(codes: IntArray) -> int:
    return len(np.unique(codes))


def _part(rows: BoolArray, system: IntArray, totals: IntArray) -> FloatArray:
    hits = np.bincount(system[rows], minlength=len(totals))
    return np.asarray(np.divide(hits, totals, out=np.full(len(totals), np.nan), where=totals > 0))


def _rank(
    shares: _Shares,
    n_outputs: IntArray,
    n_ratings: IntArray,
    bootstrap: Bootstrap,
    totals: dict[str, int],
    part_shares: Mapping[str, FloatArray] | None = None,
    unknown: Mapping[int, str] | None = None,
) -> Ranking:
    """Return the ranking; `unknown` gives by system number why a system without points has no value."""
    if len(shares.labels) == 0:
        return Ranking(shares.method, (), 0, 0, bootstrap.resamples, bootstrap.seed, bootstrap.confidence, totals)
    columns = _cell_columns(shares)
    scores = _system_means(shares, columns.sum(axis=0)[None, :])[0]
    points, counts = np.split(columns, 2, axis=1)
    n_drawn = np.count_nonzero(counts, axis=0)
    replicates = _replicates(shares, columns, bootstrap)
    equal = (np.abs(points - np.nan_to_num(scores) * counts) < 1e-9).all(axis=0)
    if is_share := shares.method != "mean":
        spread_shares_of_all(replicates, scores, n_drawn, bootstrap.seed)
        equal &= (scores > 0) & (scores < 1)
    # With fewer items, resamples give no information on ranks.
    for_ranks = np.where(n_drawn >= np.where(equal, _LEAST_ALIKE, MIN_CLUSTERS), replicates, np.nan)
    defined = ~np.isnan(scores)
    ranks = np.where(defined, 1 + (scores[None, :] > scores[:, None]).sum(axis=1), 1 + defined.sum())
    rank_low, rank_high = rank_intervals(scores, ranks, for_ranks, bootstrap.confidence)
    order = sorted(range(len(scores)), key=lambda k: (not defined[k], -np.nan_to_num(scores[k]), k))
    tiers = link_tiers(order, rank_low, rank_high)
    rows = []
    for k in order:
        estimate = Estimate.undefined((unknown or {}).get(k, NO_JUDGEMENT))
        if defined[k]:
            point = Estimate.point(float(scores[k]), int(n_outputs[k]))
            clusters = {"items": int(n_drawn[k])}
            estimate = with_interval(
                point, replicates[:, k], clusters=clusters, confidence=bootstrap.confidence, is_share=is_share
            )
        row = SystemScore(
            system=np.asarray(shares.labels)[k : k + 1].tolist()[0],
            estimate=estimate,
            n_outputs=int(n_outputs[k]),
            n_ratings=int(n_ratings[k]),
            rank=int(ranks[k]),
            rank_low=int(rank_low[k]),
            rank_high=int(rank_high[k]),
            tier=tiers[k],
            shares={name: float(share[k]) for name, share in (part_shares or {}).items() if n_ratings[k]},
            is_ranked=bool(defined[k]),
        )
        rows.append(row)
    return Ranking(
        shares.method, tuple(rows), shares.n_items, shares.n_clusters, bootstrap.resamples, bootstrap.seed,
        bootstrap.confidence, totals,
    )  # fmt: skip


def _cell_columns(shares: _Shares) -> FloatArray:
    """Return points and counts per cluster and system, (clusters, 2 systems)."""
    n_systems = len(shares.labels)
    cluster, _ = encode(shares.cluster, "cluster")
    n_clusters = max(shares.n_clusters, 1)
    cells = cluster * n_systems + shares.system
    tables = [
        np.bincount(cells, weights=column, minlength=n_clusters * n_systems).reshape(n_clusters, n_systems)
        for column in (shares.points, np.ones(len(cells)))
    ]
    return np.concatenate(tables, axis=1)


def _system_means(shares: _Shares, sums: FloatArray) -> FloatArray:
    n_systems = len(shares.labels)
    points, counts = sums[:, :n_systems], sums[:, n_systems:]
    return snap(np.divide(points, counts, out=np.full(points.shape, np.nan), where=counts > 0))


def _replicates(shares: _Shares, columns: FloatArray, bootstrap: Bootstrap) -> FloatArray:
    rows = np.arange(len(columns))
    sums = resampled_sums(columns, rows, len(columns), resamples=bootstrap.resamples, seed=bootstrap.seed)
    return _system_means(shares, sums)


def rank_intervals(
    scores: FloatArray, ranks: IntArray, replicates: FloatArray, confidence: float
) -> tuple[IntArray, IntArray]:
    """Return the best and worst rank of each system; without resamples or judgements its observed ranks. A system
    with too few items for resamples may have any rank."""
    low, high = ranks.copy(), ranks.copy()
    tables = replicates if len(replicates) else scores[None, :]
    rated = np.flatnonzero(~np.isnan(scores))
    unknown = int(np.isnan(tables[:, rated]).all(axis=0).sum())
    lowest, highest = tails(confidence)
    for k in rated:
        column = tables[:, k]
        others, own = tables[~np.isnan(column)], column[~np.isnan(column), None]
        if len(own):
            low[k] = np.percentile(1 + (others > own).sum(axis=1), lowest, method="lower")
            high[k] = np.percentile((others >= own).sum(axis=1), highest, method="higher") + unknown
        else:
            low[k], high[k] = 1, len(rated)
    return low, high


def link_tiers(order: list[int], low: IntArray, high: IntArray) -> dict[int, int]:
    """Return the number of each group of systems linked by overlapping rank intervals, best first.

    `order`: systems, best first; `low`, `high`: (n,) ends of their rank intervals."""
    tiers: dict[int, int] = {}
    tier, reach = 0, 0
    for k in sorted(order, key=lambda k: (low[k], high[k])):
        if low[k] > reach:
            tier += 1
        reach = max(reach, int(high[k]))
        tiers[k] = tier
    return tiers
