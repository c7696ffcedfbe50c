"""Rater reports: bias, spread, time, self-consistency, control items, agreement with other raters, drift.

Reports give reasons to review a rater; no rater is excluded here. Ratings are normalised in `normalise`.

Explained in docs/explanation/statistics/human-scores.md#reports-of-raters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, encode, float_column, identifiers
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.coefficients import pearson_value, undefined_reason

# A reason needs a p-value below this over all raters together (Bonferroni) ...
_LEVEL = 0.05
# ... and a large distance, in standard deviations of all ratings from the others' mean.
_LARGE_BIAS, _LARGE_DRIFT = 0.5, 0.5
# One answer given in at least this share of the judgements, in at least this many, and this much more often than by
# others.
_SAME, _SAME_JUDGEMENTS, _SAME_MORE = 0.9, 20, 0.2
# Spread at least this multiple of the pooled spread, or at most this share of the median rater's, if that is at least
# half of the pooled spread: where most raters hardly vary, no variation is not unusual.
_WIDE, _NARROW, _VARIED = 2.0, 0.3, 0.5
# Faster than this share of the median rater's seconds, or faster than this many seconds: silent reading takes about 1
# second per 4 words (Brysbaert 2019, doi 10.1016/j.jml.2019.104047), before the answer.
_FAST, _TOO_FAST = 1 / 3, 1.0
# Control items: at least this many failed, and at least this share.
_FAILED, _FAILED_SHARE = 2, 0.25
_MIN_REPEATS = 4
# With fewer shared outputs, bias and drift are no reason.
_MIN_SHARED = 10

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class RaterReport:
    """Report on one rater.

    `n`: judgements without repeats; `bias`: mean difference to the other raters' mean of the same output (t
    interval, n = shared outputs); `spread`: standard deviation of the ratings; `most_given`, `most_given_share`: the
    most frequent rating; `seconds`: median time; `self_consistency`: share of repeats answered as the first time
    (Wilson interval), `repeat_distance`: their mean absolute difference; `control_failures`: share of control
    items failed (Wilson); `agreement`: Pearson's r with the mean of the others (Fisher interval); `drift`: mean bias
    in the later half of the judgements minus that in the earlier half (t interval). `reasons`: sentences, none for
    most."""

    rater: Any
    n: int
    bias: Estimate
    spread: Estimate
    most_given: float
    most_given_share: float
    seconds: Estimate
    self_consistency: Estimate
    repeat_distance: Estimate
    control_failures: Estimate
    agreement: Estimate
    drift: Estimate
    reasons: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-safe values; estimates by `Estimate.as_dict`."""
        result: dict[str, Any] = {}
        for name in self.__slots__:
            entry = getattr(self, name)
            if isinstance(entry, float) and math.isnan(entry):
                entry = None
            result[name] = entry.as_dict() if isinstance(entry, Estimate) else entry
        rater = result["rater"]
        result["rater"] = rater.item() if isinstance(rater, np.generic) else rater
        result["reasons"] = list(self.reasons)
        return result


def rater_reports(
    value: ArrayLike,
    output: ArrayLike,
    rater: ArrayLike,
    *,
    seconds: ArrayLike | None = None,
    control_failed: ArrayLike | None = None,
    repeat_of: ArrayLike | None = None,
    at: ArrayLike | None = None,
) -> list[RaterReport]:
    """Return one report per rater, sorted by rater; (n,) columns, one row per rating for a single aspect, nan =
    missing.

    `value`: ratings; `output`, `rater`: identifiers.
    `seconds`: time of each judgement; `control_failed`: True, False, or None if the row is no control item;
    `repeat_of`: the output that the row shows again, None in the first judgement of an output; `at`: time of the
    judgement, as numbers, datetime64 or ISO text in a single format. Repeats count for self-consistency only. Without
    an optional column its figures are undefined, with the reason.

    A reason needs a large distance that, where it can be tested, is significant over all raters (5 %, Bonferroni); the
    limits are the constants of this module.

    Raises `ColumnError` for columns that do not fit."""
    values = float_column(value, "value")
    n = len(values)
    outputs = identifiers(output, "output", n)
    raters, labels = encode(identifiers(rater, "rater", n), "rater")
    repeats = _given(repeat_of, "repeat_of", n)
    first = np.isfinite(values) & np.array([entry is None for entry in repeats.tolist()], dtype=np.bool_)
    own = _Ratings(values, outputs, raters, first, len(labels))
    columns = _Columns(
        own, labels, raters,
        None if seconds is None else float_column(seconds, "seconds", n),
        None if control_failed is None else _flags(control_failed, n),
        None if repeat_of is None else repeats,
        None if at is None else identifiers(at, "at", n),
        0.975,
    )  # fmt: skip
    return columns.reports()


class _Ratings:
    """First ratings, each with the mean of the other raters of the same output (nan without other raters)."""

    def __init__(
        self, values: FloatArray, outputs: NDArray[Any], raters: IntArray, first: BoolArray, n_raters: int
    ) -> None:
        self.rows = np.flatnonzero(first)
        self.values = values
        self.outputs = outputs
        codes, _ = encode(outputs[self.rows], "output")
        # Repeats were removed above; a second rating by the same rater does not count as another rater's.
        pair = np.unique(codes * max(n_raters, 1) + raters[self.rows], return_inverse=True)[1].reshape(-1)
        v = values[self.rows]
        sums, sizes = np.bincount(codes, weights=v), np.bincount(codes)
        own_sum, own_size = np.bincount(pair, weights=v), np.bincount(pair)
        others = sizes[codes] - own_size[pair]
        mean = np.full(len(v), np.nan)
        np.divide(sums[codes] - own_sum[pair], others, out=mean, where=others > 0)
        self.others = np.full(len(values), np.nan)
        self.others[self.rows] = mean
        deviation = (v - mean)[others > 0]
        self.spread = float(deviation.std()) if len(deviation) else math.nan


@dataclass(slots=True)
class _Columns:
    own: _Ratings
    labels: NDArray[Any]
    raters: IntArray
    seconds: FloatArray | None
    failed: FloatArray | None
    repeats: NDArray[Any] | None
    at: NDArray[Any] | None
    tail: float

    def reports(self) -> list[RaterReport]:
        order = np.argsort(self.raters, kind="stable")
        ends = np.cumsum(np.bincount(self.raters, minlength=len(self.labels)))
        figures = [self._figures(rows) for rows in np.split(order, ends[:-1])] if len(self.labels) else []
        middle = {
            name: _median([result[name].value for result in figures if result[name].is_defined])
            for name in ("spread", "seconds", "agreement")
        }
        repeats = [result["self_consistency"] for result in figures if result["self_consistency"].is_defined]
        middle["self_consistency"] = _pooled([result.value for result in repeats], [result.n for result in repeats])
        spreads = [result["spread"] for result in figures if result["spread"].is_defined]
        middle["all_spread"] = math.sqrt(_pooled([s.value**2 for s in spreads], [s.n - 1 for s in spreads]))
        middle["most_given_share"] = _median([result["most_given_share"] for result in figures if result["n"]])
        level = _LEVEL / max(len(figures), 1)
        return [
            RaterReport(label, **result, reasons=tuple(_reasons(result, middle, self.own.spread, level, self.tail)))
            for label, result in zip(self.labels.tolist(), figures, strict=True)
        ]

    def _figures(self, rows: IntArray) -> dict[str, Any]:
        own, first = self.own, rows[np.isin(rows, self.own.rows, assume_unique=True)]
        values, others = own.values[first], own.others[first]
        shared = np.isfinite(others)
        deviation = values[shared] - others[shared]
        kinds, counts = np.unique(values, return_counts=True)
        spread = Estimate.undefined("fewer than 2 ratings", len(values))
        if len(values) >= 2:
            spread = Estimate.point(float(values.std(ddof=1)), len(values))
        return {
            "n": len(values),
            "bias": self._mean(deviation, "no output is shared with another rater"),
            "spread": spread,
            "most_given": float(kinds[np.argmax(counts)]) if len(kinds) else math.nan,
            "most_given_share": float(counts.max() / len(values)) if len(kinds) else math.nan,
            "seconds": self._time(rows),
            **self._repeated(rows, first),
            "control_failures": self._controls(rows),
            "agreement": self._agreement(values[shared], others[shared]),
            "drift": self._drift(first[shared], deviation),
        }

    def _mean(self, values: FloatArray, reason: str) -> Estimate:
        if len(values) == 0:
            return Estimate.undefined(reason)
        if len(values) == 1:
            return Estimate.point(float(values[0]), 1, "no interval: one output")
        half = _t(self.tail, len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
        mean = float(values.mean())
        return Estimate(mean, mean - half, mean + half, len(values))

    def _time(self, rows: IntArray) -> Estimate:
        if self.seconds is None:
            return Estimate.undefined("no times are known")
        known = self.seconds[rows]
        known = known[np.isfinite(known)]
        return Estimate.point(float(np.median(known)), len(known)) if len(known) else Estimate.undefined(
            "no times are known"
        )  # fmt: skip

    def _repeated(self, rows: IntArray, first: IntArray) -> dict[str, Estimate]:
        reason = "no output was shown twice"
        nothing = {"self_consistency": Estimate.undefined(reason), "repeat_distance": Estimate.undefined(reason)}
        if self.repeats is None:
            return nothing
        before: dict[Any, list[float]] = {}
        for output, value in zip(self.own.outputs[first].tolist(), self.own.values[first].tolist(), strict=True):
            before.setdefault(output, []).append(value)
        distances = [
            abs(float(self.own.values[row]) - float(np.mean(before[self.repeats[row]])))
            for row in rows
            if self.repeats[row] in before and np.isfinite(self.own.values[row])
        ]
        if not distances:
            return nothing
        same = sum(distance == 0 for distance in distances)
        return {
            "self_consistency": _share(same, len(distances), self.tail),
            "repeat_distance": Estimate.point(float(np.mean(distances)), len(distances)),
        }

    def _controls(self, rows: IntArray) -> Estimate:
        known = np.empty(0) if self.failed is None else self.failed[rows]
        known = known[np.isfinite(known)]
        if len(known) == 0:
            return Estimate.undefined("no control item was judged")
        return _share(int(known.sum()), len(known), self.tail)

    def _agreement(self, values: FloatArray, others: FloatArray) -> Estimate:
        reason = undefined_reason(values, others)
        if reason:
            said = {"the metric is constant": "all ratings are equal", "fewer than 3 pairs": "fewer than 3 outputs"}
            shared = "the others' ratings are all equal"
            return Estimate.undefined(f"{said.get(reason, shared)} where others rated too", len(values))
        r = pearson_value(values, others)
        if len(values) <= 3 or abs(r) == 1:
            return Estimate.point(r, len(values))
        half = _NORMAL.inv_cdf(self.tail) / math.sqrt(len(values) - 3)
        return Estimate(r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), len(values))

    def _drift(self, rows: IntArray, deviation: FloatArray) -> Estimate:
        if self.at is None:
            return Estimate.undefined("the order of the judgements is not known")
        if len(rows) < 4:
            return Estimate.undefined("fewer than 4 outputs are shared with others", len(rows))
        codes, _ = encode(self.own.outputs[rows], "output")
        order = np.lexsort((codes, np.unique(self.at[rows], return_inverse=True)[1].reshape(-1)))
        early, late = np.array_split(deviation[order], 2)
        change = float(late.mean() - early.mean())
        parts = [float(part.var(ddof=1)) / len(part) for part in (early, late)]
        variance = sum(parts)
        if variance == 0:
            return Estimate(change, change, change, len(rows))
        freedom = variance**2 / sum(
            part**2 / (size - 1) for part, size in zip(parts, map(len, (early, late)), strict=True)
        )
        half = _t(self.tail, freedom) * math.sqrt(variance)
        return Estimate(change, change - half, change + half, len(rows))


def _reasons(found: dict[str, Any], middle: dict[str, float], spread: float, level: float, tail: float) -> list[str]:
    """Return sentences on unusual figures; `level` is the significance level per rater."""
    reasons = []
    bias, drift, agreement = found["bias"], found["drift"], found["agreement"]
    if _stands_out(bias, _LARGE_BIAS * spread, level, tail):
        reasons.append(
            f"Rates {abs(bias.value):.2f} {'higher' if bias.value > 0 else 'lower'} than others do on the same outputs "
            f"({bias.low:.2f} to {bias.high:.2f}, {bias.n} outputs)."
        )
    share = found["most_given_share"]
    if found["n"] >= _SAME_JUDGEMENTS and share >= _SAME and share >= middle["most_given_share"] + _SAME_MORE:
        reasons.append(
            f"Gave {found['most_given']:g} in {share:.0%} of {found['n']} judgements; the middle rater gives one "
            f"rating in {middle['most_given_share']:.0%}."
        )
    own = found["spread"]
    varied = middle["spread"] >= _VARIED * middle["all_spread"]
    if own.n >= _SAME_JUDGEMENTS and own.value > _WIDE * middle["all_spread"]:
        reasons.append(f"The ratings spread by {own.value:.2f}, those of all raters by {middle['all_spread']:.2f}.")
    elif own.n >= _SAME_JUDGEMENTS and varied and own.value < _NARROW * middle["spread"]:
        reasons.append(f"The ratings spread by {own.value:.2f} only, the middle rater's by {middle['spread']:.2f}.")
    seconds = found["seconds"]
    if seconds.is_defined and seconds.n >= 5 and seconds.value < _TOO_FAST:
        reasons.append(f"Takes {seconds.value:.2g} s a judgement, too short to read a text and answer.")
    elif seconds.is_defined and seconds.n >= 5 and seconds.value < _FAST * middle["seconds"]:
        reasons.append(f"Takes {seconds.value:.1f} s a judgement; the middle rater takes {middle['seconds']:.1f} s.")
    repeats = found["self_consistency"]
    if repeats.n >= _MIN_REPEATS and _fewer(repeats, middle["self_consistency"], level):
        reasons.append(
            f"Gave the same answer to {round(repeats.value * repeats.n)} of {repeats.n} outputs shown twice; all "
            f"raters together do in {middle['self_consistency']:.0%}."
        )
    failures = found["control_failures"]
    n_failed = round(failures.value * failures.n) if failures.is_defined else 0
    if fails_controls(n_failed, failures.n):
        reasons.append(f"Failed {n_failed} of {failures.n} control items.")
    if _below(agreement, middle["agreement"], level):
        reasons.append(
            f"The ratings correlate {agreement.value:.2f} ({agreement.low:.2f} to {agreement.high:.2f}) with the mean "
            f"of the others; the middle rater's correlate {middle['agreement']:.2f}."
        )
    if _stands_out(drift, _LARGE_DRIFT * spread, level, tail):
        reasons.append(
            f"Moved by {drift.value:+.2f} against the others between the first and the second half of the judgements "
            f"({drift.low:.2f} to {drift.high:.2f})."
        )
    return reasons


def fails_controls(n_failed: int, n: int) -> bool:
    """Return whether `n_failed` failures in `n` judged control items are a reason to review a rater."""
    return n_failed >= _FAILED and n_failed >= _FAILED_SHARE * n


def _stands_out(found: Estimate, least: float, level: float, tail: float) -> bool:
    """Return whether a mean differs significantly and by at least `least` from 0; its interval gives the standard
    error."""
    if not found.has_interval or found.n < _MIN_SHARED or not abs(found.value) >= least:
        return False
    half = (found.high - found.low) / 2
    return abs(found.value) > half * _t(1 - level / 2, found.n - 1) / _t(tail, found.n - 1)


def _below(found: Estimate, middle: float, level: float) -> bool:
    if not found.has_interval or math.isnan(middle) or abs(middle) >= 1 or found.value > middle / 2:
        return False
    distance = (math.atanh(middle) - math.atanh(found.value)) * math.sqrt(found.n - 3)
    return 1 - _NORMAL.cdf(distance) < level


def _fewer(found: Estimate, usual: float, level: float) -> bool:
    """Return whether a share is significantly below the usual one (exact binomial test)."""
    from scipy.special import bdtr

    return found.value < usual and float(bdtr(round(found.value * found.n), found.n, usual)) < level


def _share(count: int, n: int, tail: float) -> Estimate:
    """Return a share with Wilson's interval."""
    z = _NORMAL.inv_cdf(tail)
    share = count / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Estimate(share, max(0.0, centre - half), min(1.0, centre + half), n)


def _t(probability: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def _pooled(values: list[float], weights: list[int]) -> float:
    return float(np.average(values, weights=weights)) if sum(weights) else math.nan


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else math.nan


def _given(column: ArrayLike | None, name: str, n: int) -> NDArray[Any]:
    """Return identifiers as objects; None, nan and "" become None."""
    result = np.full(n, None, dtype=object)
    if column is not None:
        for row, entry in enumerate(identifiers(np.asarray(column, dtype=object), name, n).tolist()):
            if entry is not None and entry == entry and entry != "":
                result[row] = entry
    return result


def _flags(column: ArrayLike, n: int) -> FloatArray:
    """Return 1 for failed, 0 for passed, nan for no control item."""
    entries = identifiers(np.asarray(column, dtype=object), "control_failed", n).tolist()
    return np.array([math.nan if entry is None or entry != entry else float(bool(entry)) for entry in entries])
