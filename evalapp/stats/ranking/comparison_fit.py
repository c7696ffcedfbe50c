"""Models fitted to pairwise judgements, with covariance and resamples.

Columns are read in `judgements`; `comparisons`, `bias`, `fragility` and `separation` use the fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from evalapp.stats.core.coding import (
    BoolArray,
    FloatArray,
    IntArray,
    encode,
)  # fmt: skip
from evalapp.stats.core.estimate import NAN
from evalapp.stats.ranking.bradley_terry import (
    Design,
    Fit,
    Model,
    fit_counts,
    inverse_information,
    sandwich,
    sum_cluster_scores,
    sum_row_scores,
)  # fmt: skip
from evalapp.stats.ranking.connectivity import (
    NEVER_COMPARED,
    Connectivity,
    classes_above,
    is_strongly_connected,
    largest_class,
)
from evalapp.stats.ranking.judgements import Judgements
from evalapp.stats.ranking.unbounded import explain_unbounded
from evalapp.stats.resampling.bootstrap import MIN_CLUSTERS, ClusterDraws, chunk_sizes, few_note, too_few_note

ALL_TIES = "all verdicts are ties"
#: Standard deviation of the raters' individual advantage of the first side, on the scale of theta.
RATER_SD = 1.0


@dataclass(frozen=True)
class ComparisonCounts:
    """Judgements of the rated systems by kind: `counts` (u, 3) of the design's kinds (sums of weights), `n` judgements.

    If single rows matter, `cell` is 3 kind + outcome of each row, with its cluster and weight."""

    design: Design
    names: tuple[Any, ...]
    counts: FloatArray
    n: int
    cell: IntArray | None = None
    cluster: IntArray | None = None
    weight: FloatArray | None = None

    @property
    def squares(self) -> FloatArray:
        """Sums of squared weights, (u, 3)."""
        if self.weight is None or self.cell is None:
            return self.counts
        result = np.bincount(self.cell, weights=self.weight**2, minlength=self.counts.size)
        return np.asarray(result.reshape(self.counts.shape), dtype=np.float64)

    @property
    def by_cluster(self) -> csr_array:
        """Sums of weights, (clusters, 3 u)."""
        assert self.cluster is not None
        assert self.cell is not None
        n, width = int(self.cluster.max()) + 1, self.counts.size
        cells, at = np.unique(self.cluster * width + self.cell, return_inverse=True)
        sums = np.bincount(at.reshape(-1), weights=self.weight).astype(np.float64)
        return csr_array((sums, (cells // width, cells % width)), shape=(n, width))

    def draws(self, resamples: int, seed: int) -> Iterator[FloatArray]:
        """Yield counts (size, 3 u) of clusters, or of judgements, drawn with replacement."""
        width = self.counts.size
        if self.cluster is not None:
            clusters = self.by_cluster
            drawn, turned = ClusterDraws(clusters.shape[0], seed), clusters.T.tocsr()
            for size in chunk_sizes(resamples, max(clusters.shape)):
                yield np.ascontiguousarray((turned @ drawn.take(size)).T)
            return
        if self.weight is None or self.cell is None:
            times, places, values = self.counts.ravel(), np.arange(width), np.ones(width)
        else:
            # Judgements of the same cell and weight are exchangeable.
            both, n_each = np.unique(np.stack([self.cell.astype(np.float64), self.weight]), axis=1, return_counts=True)
            times = n_each.astype(np.float64)
            places, values = both[0].astype(np.int64), both[1]
        spread = csr_array((values, (np.arange(len(values)), places)), shape=(len(values), width))
        generator = np.random.default_rng([seed, 0])
        for size in chunk_sizes(resamples, max(width, len(values))):
            yield np.asarray(generator.multinomial(self.n, times / times.sum(), size=size).astype(np.float64) @ spread)


@dataclass(frozen=True)
class ComparisonFit:
    """A model fitted to judgements. `rated` (all systems) marks those with finite ratings; `theta` (rated,) sums to 0.

    `others` are the covariates and the tie parameter in the order of `names` ("side", "length", ("rater", label),
    "tie"); `covariance` covers theta followed by others, nan with `note` where it does not exist. `reasons` gives
    for each system why it is not rated."""

    model: Model
    rated: BoolArray
    theta: FloatArray
    others: FloatArray
    names: tuple[Any, ...]
    covariance: FloatArray
    fit: Fit | None
    connectivity: Connectivity
    reasons: tuple[str, ...]
    note: str
    kinds: ComparisonCounts | None

    @property
    def n_judgements(self) -> int:
        """Number of judgements between rated systems."""
        return 0 if self.kinds is None else self.kinds.n

    @property
    def n_units(self) -> int | None:
        """Number of independent clusters; None if judgements are independent."""
        return None if self.kinds is None or self.kinds.cluster is None else int(self.kinds.cluster.max()) + 1

    @property
    def log_likelihood(self) -> float | None:
        """Log-likelihood of the rated systems' judgements, including the prior."""
        return None if self.fit is None else float(self.fit.log_likelihood[0])

    @cached_property
    def model_covariance(self) -> FloatArray:
        """Inverse information: the covariance if the model holds and judgements are independent."""
        return np.full_like(self.covariance, NAN) if self.fit is None else inverse_information(self.fit)

    def resampled(self, resamples: int, seed: int) -> FloatArray:
        """Return (resamples, parameters) refitted to clusters (or judgements) drawn with replacement; nan without a
        fit."""
        size = len(self.theta) + len(self.others)
        if self.fit is None or self.kinds is None or not resamples or (self.n_units or MIN_CLUSTERS) < MIN_CLUSTERS:
            return np.empty((0, size))
        design, parts = self.fit.design, []
        for counts in self.kinds.draws(resamples, seed):
            tables = counts.reshape(len(counts), -1, 3)
            again = fit_counts(self.model, design, tables, start=self.fit)
            defined = again.converged.copy()
            if not design.has_prior:
                defined &= [_linked(design, table) for table in tables]
            columns = [again.theta, again.covariates]
            if self.model != "bradley-terry":
                columns.append(again.tie[:, None])
            parts.append(np.where(defined[:, None], np.concatenate(columns, axis=1), NAN))
        return np.concatenate(parts)


def fit_judgements(
    judged: Judgements,
    model: Model,
    *,
    side: bool = False,
    raters: bool = False,
    prior_sd: float | None = None,
    among: BoolArray | None = None,
) -> ComparisonFit:
    """Fit the systems `among`, with a sandwich covariance.

    The default is the largest class with finite ratings in the largest part that comparisons link (with `prior_sd`:
    all systems of that part)."""
    k = len(judged.labels)
    connectivity = judged.connectivity
    rated = np.ones(k, dtype=np.bool_) if among is None else among
    if among is None and prior_sd is None:
        linked = judged.linked
        rated = largest_class(judged.beats & linked[:, None] & linked[None, :], judged.n_ratings)
    outcomes = judged.outcomes[np.ix_(rated, rated)]
    if not outcomes.any():
        return _nothing(judged, model, connectivity, "" if len(judged) else "no judgement between two systems")
    if model != "bradley-terry" and not outcomes[..., ::2].any():
        return _nothing(judged, model, connectivity, ALL_TIES)
    if side or raters or judged.length is not None or judged.cluster is not None or judged.weight is not None:
        kinds = _count_by_row(judged, rated, side, raters, prior_sd)
    else:
        kinds = _count_by_pair(outcomes, prior_sd)
    fit = fit_counts(model, kinds.design, kinds.counts)
    if not fit.converged[0]:
        what = "ties and decided verdicts fit perfectly" if model != "bradley-terry" else ""
        what = "verdicts follow the side or the lengths without exception" if kinds.names else what
        return _nothing(judged, model, connectivity, f"{what or 'the fit does not converge'}: no finite estimates")
    others, names = fit.covariates[0], kinds.names
    if model != "bradley-terry":
        others, names = np.append(others, fit.tie[0]), (*names, "tie")
    covariance, note = _covariance(fit, kinds)
    if note.startswith("the effects"):
        return _nothing(judged, model, connectivity, note)
    if prior_sd is not None and not connectivity.connected:
        note = "; ".join(
            part for part in (note, f"{connectivity.note}; only the prior puts their values on one scale") if part
        )
    reasons = _reasons(judged, rated)
    return ComparisonFit(
        model, rated, fit.theta[0], others, names, covariance, fit, connectivity, reasons, note, kinds
    )  # fmt: skip


def _count_by_pair(among: FloatArray, prior_sd: float | None) -> ComparisonCounts:
    """Count with one kind for each compared pair: enough without covariates, clusters and weights."""
    first, second = np.nonzero(np.triu(among.any(axis=2), 1))
    design = Design.from_pairs(len(among), first, second, 0.0 if prior_sd is None else prior_sd**-2.0)
    counts = np.ascontiguousarray(among[first, second])
    return ComparisonCounts(design, (), counts, round(float(counts.sum())))


def _count_by_row(
    judged: Judgements, rated: BoolArray, side: bool, raters: bool, prior_sd: float | None
) -> ComparisonCounts:
    kept = rated[judged.a] & rated[judged.b]
    place = np.cumsum(rated) - 1
    design, kind, turned, names = _design(judged, kept, place, int(rated.sum()), side, raters, prior_sd)
    outcome = judged.outcome[kept]
    cell = 3 * kind + np.where(turned, 2 - outcome, outcome)
    weight = None if judged.weight is None else judged.weight[kept]
    u = len(design.first)
    counts = np.bincount(cell, weights=weight, minlength=3 * u).reshape(u, 3).astype(np.float64)
    cluster = None if judged.cluster is None else encode(judged.cluster[kept], "cluster")[0]
    return ComparisonCounts(design, names, counts, len(cell), cell, cluster, weight)


def _design(
    judged: Judgements, kept: BoolArray, place: IntArray, n: int, side: bool, raters: bool, prior_sd: float | None
) -> tuple[Design, IntArray, BoolArray, tuple[Any, ...]]:
    """Return the kinds of comparison, the kind of each judgement, whether it was reversed, and the covariate names."""
    a, b = place[judged.a[kept]], place[judged.b[kept]]
    own: list[tuple[IntArray, FloatArray]] = []
    names: list[Any] = []
    precision = [np.full(n, 0.0 if prior_sd is None else prior_sd**-2.0)]
    key = np.zeros(len(a), dtype=np.int64)
    one, zero = np.ones(len(a)), np.zeros(len(a), dtype=np.int64)
    if side or raters:
        own.append((zero, one))
        names.append("side")
        precision.append(np.zeros(1))
    # The rated systems' texts may all be equally long; then there is no length effect.
    if judged.length is not None and judged.length[kept].any():
        length = judged.length[kept]
        scale = float(np.sqrt(np.mean(length**2)))
        own.append((zero + len(names), length / scale))
        names.append("length")
        precision.append(np.zeros(1))
        key = encode(length, "length_difference")[0]
    if raters and judged.rater is not None:
        codes, labels = encode(judged.rater[kept], "rater")
        own.append((codes + len(names), one))
        names += [("rater", name) for name in judged.rater_labels[labels].tolist()]
        precision.append(np.full(len(labels), RATER_SD**-2.0))
        key = key * len(labels) + codes
    # Without covariates the side does not matter.
    turned = (a > b) & (not own)
    first, second = np.where(turned, b, a), np.where(turned, a, b)
    kinds, _ = encode(encode(key, "covariates")[0] * (n * n) + first * n + second, "kind")
    rows = np.empty(int(kinds.max()) + 1, dtype=np.int64)
    rows[kinds] = np.arange(len(kinds))
    m = len(own)
    columns = np.stack([column[rows] for column, _ in own], axis=1) if m else np.zeros((len(rows), 0), dtype=np.int64)
    values = np.stack([value[rows] for _, value in own], axis=1) if m else np.zeros((len(rows), 0))
    design = Design(n, first[rows], second[rows], len(names), columns, values, np.concatenate(precision))
    return design, kinds, np.asarray(turned), tuple(names)


def _covariance(fit: Fit, kinds: ComparisonCounts) -> tuple[FloatArray, str]:
    size = fit.design.n_linear + (fit.model != "bradley-terry")
    try:
        if kinds.cluster is None:
            return sandwich(fit, sum_row_scores(fit, kinds.squares)), ""
        clusters = kinds.by_cluster
        covariance = sandwich(fit, sum_cluster_scores(fit, clusters))
    except np.linalg.LinAlgError:
        reason = "the effects cannot be separated from the systems: pairs were always shown the same way"
        return np.full((size, size), NAN), reason
    if (n := clusters.shape[0]) <= fit.design.n_systems:
        reason = f"no interval: {n} independent units are too few for {fit.design.n_systems} systems"
        return np.full((size, size), NAN), reason
    if reason := too_few_note({"independent units": n}):
        return np.full((size, size), NAN), reason
    return covariance, few_note({"independent units": n})


def _linked(design: Design, counts: FloatArray) -> bool:
    beats = np.zeros((design.n_systems, design.n_systems), dtype=np.bool_)
    won, lost = counts[:, :2].any(axis=1), counts[:, 1:].any(axis=1)
    beats[design.first[won], design.second[won]] = True
    beats[design.second[lost], design.first[lost]] = True
    return is_strongly_connected(beats)


def _reasons(judged: Judgements, rated: BoolArray, common: str = "") -> tuple[str, ...]:
    """Return for each system why it has no finite rating; "" for the rated ones. `common` applies to all linked
    systems."""
    if rated.all():
        return ("",) * len(rated)
    linked, n_ratings = judged.linked, judged.n_ratings
    above = classes_above(judged.beats)[1]
    result = []
    for number in range(len(rated)):
        if rated[number]:
            result.append("")
        elif not n_ratings[number]:
            result.append(common or "no judgement of this system")
        elif not linked[number]:
            result.append(NEVER_COMPARED)
        else:
            result.append(common or explain_unbounded(judged, rated, number, above))
    return tuple(result)


def _nothing(judged: Judgements, model: Model, connectivity: Connectivity, reason: str) -> ComparisonFit:
    """Return a fit that rates no system because of `reason` (default: no two systems have finite ratings)."""
    none, empty = np.zeros(len(judged.labels), dtype=np.bool_), np.empty(0)
    note = reason or connectivity.note
    return ComparisonFit(
        model, none, empty, empty, (), np.empty((0, 0)), None, connectivity, _reasons(judged, none, reason), note, None
    )  # fmt: skip
