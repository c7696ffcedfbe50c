"""Agreement of scores with human verdicts on pairs of outputs: pairs and their verdicts, shares of correct verdicts,
and the agreement of a person with the others. Pairs of rated outputs are in `pairs`, rankings in `comparisons`.

Explained in docs/explanation/statistics/correlation.md#compared-pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import ROUNDING, BoolArray, FloatArray, IntArray, encode, float_column, identifiers
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.pairs import CALIBRATION, PairTable, TieCalibration, calibrate_table
from evalapp.stats.resampling.bootstrap import (
    Bootstrap,
    resampled_sums,
    with_interval,
)

NO_PAIR = "no pair of outputs has a verdict and both scores"
NO_DECIDED = "people decided no pair of outputs that has both scores"
ALONE = "no pair was judged by two people"


@dataclass(frozen=True, slots=True)
class VerdictPairs:
    """Compared pairs of outputs, each once.

    `first` < `second` identify the outputs; `counts` (p, 3) counts the judgements that found the first worse, both
    equal, and the first better. `row` is one judgement of each pair; `of` (n,) is the pair of every judgement and
    `said` (n,) its verdict on the first: -1, 0 or 1."""

    first: IntArray
    second: IntArray
    counts: IntArray
    row: IntArray
    of: IntArray
    said: IntArray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def agreed(self) -> BoolArray:
        """Whether a pair has a single most frequent verdict; without one the human verdict is unknown."""
        return _verdict(self.counts)[1]

    @property
    def sign(self) -> IntArray:
        """Most frequent verdict on the first: -1 worse, 0 equal, 1 better; 0 also if there is none."""
        return _verdict(self.counts)[0]


def _verdict(counts: IntArray) -> tuple[IntArray, BoolArray]:
    most = counts.max(axis=1, initial=0)
    agreed = ((counts == most[:, None]).sum(axis=1) == 1) & (most > 0)
    return np.where(agreed, counts.argmax(axis=1) - 1, 0).astype(np.int64), agreed


def verdict_pairs(first: ArrayLike, second: ArrayLike, said: ArrayLike) -> VerdictPairs:
    """Return the pairs from judgements (n,) of `first` against `second`, numbers that identify outputs.

    `said` is 1 if the first was found better, -1 if worse, 0 if equal. The order of the two does not matter.

    Raises ValueError for an output compared with itself."""
    a, b = (
        np.asarray(identifiers(side, name), dtype=np.int64) for side, name in ((first, "first"), (second, "second"))
    )
    sign = np.asarray(identifiers(said, "said", len(a)), dtype=np.int64)
    if (a == b).any() or (np.abs(sign) > 1).any():
        raise ValueError("first and second are two different outputs each, and said is -1, 0 or 1")
    sign = np.where(a > b, -sign, sign)
    low, high = np.minimum(a, b), np.maximum(a, b)
    keys, row, of = np.unique(np.stack([low, high], axis=1), axis=0, return_index=True, return_inverse=True)
    of = of.reshape(-1).astype(np.int64)
    counts = np.bincount(of * 3 + sign + 1, minlength=3 * len(keys)).reshape(-1, 3)
    return VerdictPairs(keys[:, 0], keys[:, 1], counts.astype(np.int64), row.astype(np.int64), of, sign)


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """Agreement of score differences with human verdicts.

    `decided`: share of correct pairs among those that people decided, equal scores counting half; chance level is
    1/2. `calibration`: three verdicts over all pairs, differences up to `epsilon` being ties; `n_missing` pairs lack
    a score; `equal` is the share of decided pairs with equal scores."""

    decided: Estimate
    calibration: TieCalibration
    n_missing: int
    equal: float


def outcomes(margin: ArrayLike, sign: ArrayLike) -> FloatArray:
    """Return for every pair whether the score difference `margin` (first minus second) has the human `sign`: 1, 0,
    or 1/2 for equal scores; nan if a score is missing or people found both equal."""
    x = float_column(margin, "margin")
    y = float_column(sign, "sign", len(x))
    right = np.where(x == 0, 0.5, np.where(np.sign(x) == y, 1.0, 0.0))
    return np.where(np.isnan(x) | (y == 0), np.nan, right)


def margins(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Return first score minus second; 0 if they differ only by rounding (1e-12 of the largest)."""
    a = float_column(first, "first")
    b = float_column(second, "second", len(a))
    largest = max((float(np.nanmax(np.abs(side), initial=0.0)) for side in (a, b)), default=0.0)
    difference = a - b
    return np.where(np.abs(difference) <= ROUNDING * largest, 0.0, difference)


def agree_on_pairs(
    margin: ArrayLike,
    sign: ArrayLike,
    *,
    folds: int | None = 5,
    bootstrap: Bootstrap = CALIBRATION,
) -> VerdictAgreement:
    """Return the agreement of score differences `margin` (p,) with human verdicts `sign` (p,; -1, 0 or 1).

    `bootstrap.cluster`: (p,) groups resampled whole for the intervals (the group of the pair's item).

    decided = mean of `outcomes`; n counts pairs. The tie threshold is the smallest one with the most correct
    verdicts on these pairs (Deutsch et al. 2023, but over pairs instead of averaged over items, because items have
    few compared pairs); `cross_validated` takes each fold's threshold from the other `folds`, made of whole
    clusters."""
    x = float_column(margin, "margin")
    y = np.asarray(identifiers(sign, "sign", len(x)), dtype=np.int64)
    cluster = np.arange(len(x)) if bootstrap.cluster is None else bootstrap.cluster
    codes, labels = encode(identifiers(cluster, "cluster", len(x)), "cluster")
    right = outcomes(x, y)
    used = np.isfinite(right)
    decided = share(right[used], codes[used], bootstrap) if used.any() else Estimate.undefined(NO_DECIDED)
    equal = float((right[used] == 0.5).mean()) if used.any() else float("nan")
    known = np.isfinite(x)
    table = _each_for_itself(x[known], y[known], codes[known], len(labels))
    result = calibrate_table(table, folds, bootstrap, absent=NO_PAIR)
    return VerdictAgreement(decided, result, int((~known).sum()), equal)


def _each_for_itself(margin: FloatArray, sign: IntArray, cluster: IntArray, n_clusters: int) -> PairTable:
    """Return the pairs as a table in which every pair is an item, so that averages are over pairs."""
    n = len(margin)
    return PairTable(
        group=np.arange(n), size=np.ones(n, dtype=np.int64), cluster=cluster, n_clusters=n_clusters,
        weight=np.full(n, 1.0 / max(n, 1)), distance=np.abs(margin), agrees=np.sign(margin) == sign,
        human_tied=sign == 0, tolerance=ROUNDING * float(np.abs(margin).max(initial=0.0)),
    )  # fmt: skip


def share(values: FloatArray, cluster: IntArray, bootstrap: Bootstrap) -> Estimate:
    """Return the mean of (n,) values with an interval over resampled clusters.

    `values`: 0 to 1; `cluster`: (n,) groups resampled whole; `bootstrap`: resamples, seed and confidence."""
    if len(values) == 0:
        return Estimate.undefined(NO_PAIR)
    point = Estimate.point(float(values.mean()), len(values))
    if bootstrap.resamples == 0:
        return point
    labels, codes = np.unique(cluster, return_inverse=True)
    columns = np.stack([values, np.ones_like(values)], axis=1)
    sums = resampled_sums(columns, codes.reshape(-1), len(labels), resamples=bootstrap.resamples, seed=bootstrap.seed)
    clusters = {"groups of items": len(labels)}
    values = sums[:, 0] / sums[:, 1]
    return with_interval(point, values, clusters=clusters, confidence=bootstrap.confidence, is_share=True)


def chance_level(sign: IntArray) -> float:
    """Return the chance level on all pairs: the share of correct verdicts reached without reading, by calling every
    pair tied or by choosing the better text at random, whichever is higher.

    `sign`: (n,) human verdicts, 0 for a tie."""
    tied = float((sign == 0).mean()) if len(sign) else float("nan")
    return max(tied, (1.0 - tied) / 2)


def one_against_others(
    pairs: VerdictPairs,
    *,
    bootstrap: Bootstrap = CALIBRATION,
) -> tuple[Estimate, Estimate]:
    """Return the agreement of a person with the most frequent verdict of the others on the same pair: on pairs that
    the others decided (a tie counts half), and on all three verdicts.

    `bootstrap.cluster`: (n,) groups of the judgements. Judgements count only if the others have a single most
    frequent verdict. Undefined if no pair was judged twice."""
    others = pairs.counts[pairs.of].copy()
    others[np.arange(len(others)), pairs.said + 1] -= 1
    sign, agreed = _verdict(others)
    cluster = np.asarray(np.arange(len(pairs.of)) if bootstrap.cluster is None else bootstrap.cluster)
    if not agreed.any():
        return Estimate.undefined(ALONE), Estimate.undefined(ALONE)
    right = outcomes(pairs.said, sign)
    used = agreed & np.isfinite(right)
    decided = share(right[used], cluster[used], bootstrap) if used.any() else Estimate.undefined(NO_DECIDED)
    return decided, share((pairs.said == sign)[agreed].astype(np.float64), cluster[agreed], bootstrap)
