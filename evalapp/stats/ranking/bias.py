"""Do judges favour a side or the longer text? Effects and tests over the decided comparisons (no ties of any kind),
adjusted for the strengths of the systems.

Explained in docs/explanation/statistics/bias.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr, ndtri

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, encode
from evalapp.stats.core.estimate import NAN, Estimate
from evalapp.stats.ranking.comparison_fit import fit_judgements
from evalapp.stats.ranking.judgements import LOSS, TIE, WIN, Judgements, PairwiseComparisons, read_judgements
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE, too_few_note, with_ends, with_share_of_all


@dataclass(frozen=True, slots=True)
class Bias:
    """A tendency of the judges. Only decided comparisons count: no `tie`, `both_bad` or `cannot_decide`.

    `estimate` is the chance that the favoured kind (the first side, the longer text) wins a decided comparison
    between equal systems, 0.5 without bias; `log_odds` the same as log odds; `p` two-sided; their `n` are the decided
    comparisons that they are fitted to. `raw` is the share it won of the decided comparisons as they are, `raw_p` its
    test against one half: the difference between the two comes from the systems.
    """

    estimate: Estimate
    log_odds: Estimate
    p: float | None
    raw: Estimate
    raw_p: float | None
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON-safe values."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {name: plain[name].as_dict() for name in ("estimate", "log_odds", "raw")}


def side_bias(
    system_a: ArrayLike,
    system_b: ArrayLike,
    verdict: ArrayLike,
    *,
    item: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Bias:
    """Is the side shown first (`system_a`) favoured? (n,) columns as in `rank_by_comparisons`.

    `system_a`, `system_b`, `verdict`: as in `PairwiseComparisons`; `item`, `cluster`: groups of dependent judgements
    (`cluster`, else `item`); `confidence`: level of the interval.

    Bradley-Terry over the decided comparisons with an effect of the side; its test is Wald's with the sandwich over
    clusters. Under Davidson's model, which has ties, this is the likelihood of the verdicts given that they are no tie.
    """
    judged = read_judgements(PairwiseComparisons(system_a, system_b, verdict, item=item), cluster=cluster)
    decided = judged.only(judged.outcome != TIE)
    raw, raw_p = _share(decided.outcome == WIN, decided.cluster, confidence)
    return _bias(_effect(decided, "side", confidence), raw, raw_p, "the first side")


def length_bias(
    system_a: ArrayLike,
    system_b: ArrayLike,
    verdict: ArrayLike,
    length_difference: ArrayLike,
    *,
    item: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Bias:
    """Is the longer text favoured? `length_difference` (n,) is the length of a less that of b, in any unit.

    `system_a`, `system_b`, `verdict`, `item`, `cluster`, `confidence`: as in `side_bias`.

    `estimate` is at the usual difference, the root mean square over all comparisons, decided or not; the model is that
    of `side_bias`. `raw` leaves out equal lengths. Systems are adjusted for, so a system that is better and longer does
    not count as bias; where a system is always longer than another by the same amount, strength and length cannot be
    separated, and the note says so.
    """
    judged = read_judgements(
        PairwiseComparisons(system_a, system_b, verdict, item=item, length_difference=length_difference),
        cluster=cluster,
    )
    assert judged.length is not None
    decided = judged.only(judged.outcome != TIE)
    assert decided.length is not None
    unequal = decided.length != 0
    won = np.where(decided.length > 0, decided.outcome == WIN, decided.outcome == LOSS)[unequal]
    units = None if decided.cluster is None else decided.cluster[unequal]
    raw, raw_p = _share(won, units, confidence)
    if not (judged.length != 0).any():
        undefined = Estimate.undefined("all texts compared are equally long", len(judged))
        return _bias((undefined, None), raw, raw_p, "the longer text")
    usual = float(np.sqrt(np.mean(judged.length**2)))
    return _bias(_effect(decided, "length", confidence, usual), raw, raw_p, "the longer text")


def _effect(decided: Judgements, name: str, confidence: float, usual: float = 0.0) -> tuple[Estimate, float | None]:
    """The log odds of the covariate with interval, and its p; that of the length at a difference of `usual`."""
    if not len(decided):
        return Estimate.undefined("no comparison was decided"), None
    fit = fit_judgements(decided, "bradley-terry", side=name == "side")
    if fit.fit is None:
        return Estimate.undefined(fit.note or "no comparison between rated systems", len(decided)), None
    if name not in fit.names:
        return Estimate.undefined("the texts of the systems that can be rated are equally long", len(decided)), None
    place = len(fit.theta) + fit.names.index(name)
    scale = 1.0
    if decided.length is not None:
        # The fit's own unit is the root mean square over the comparisons that it could use.
        rated = fit.rated[decided.a] & fit.rated[decided.b]
        scale = usual / float(np.sqrt(np.mean(decided.length[rated] ** 2)))
    value, variance = scale * float(fit.others[fit.names.index(name)]), float(fit.covariance[place, place])
    if math.isnan(variance):
        return Estimate.point(value, fit.n_judgements, fit.note), None
    sd = scale * math.sqrt(max(variance, 0.0))
    reach = float(ndtri(0.5 + confidence / 2)) * sd
    p = float(2 * ndtr(-abs(value) / sd)) if sd > 0 else None
    return Estimate(value, value - reach, value + reach, fit.n_judgements, fit.note), p


def _share(won: BoolArray, cluster: IntArray | None, confidence: float) -> tuple[Estimate, float | None]:
    """Share of True with its interval, and the p of a share of 1/2: exact for single judgements, by clusters
    otherwise."""
    n = len(won)
    if n == 0:
        return Estimate.undefined("no decided comparison"), None
    share = float(won.mean())
    if cluster is None:
        # Half of the time of importing this package would be SciPy's distributions.
        from scipy.stats import binomtest

        test = binomtest(int(won.sum()), n, 0.5)
        low, high = test.proportion_ci(confidence, method="wilson")
        return Estimate(share, float(low), float(high), n), float(test.pvalue)
    codes, labels = encode(cluster, "cluster")
    clusters = {"groups": len(labels)}
    if too_few := too_few_note(clusters):
        return Estimate.point(share, n, too_few), None
    if share in (0.0, 1.0):
        return with_share_of_all(Estimate.point(share, n), clusters, confidence), min(1.0, 2.0 * 0.5 ** len(labels))
    sums: FloatArray = np.bincount(codes, weights=won.astype(np.float64) - share).astype(np.float64)
    sd = math.sqrt(len(labels) / (len(labels) - 1) * float(sums @ sums)) / n
    reach = float(ndtri(0.5 + confidence / 2)) * sd
    p = float(2 * ndtr(-abs(share - 0.5) / sd)) if sd > 0 else None
    return with_ends(Estimate.point(share, n), max(0.0, share - reach), min(1.0, share + reach), clusters), p


def _bias(fitted: tuple[Estimate, float | None], raw: Estimate, raw_p: float | None, what: str) -> Bias:
    log_odds, p = fitted
    if not log_odds.is_defined:
        estimate = Estimate.undefined(log_odds.note, log_odds.n)
        sentence = f"Whether {what} is favoured cannot be determined: {log_odds.note}."
        if raw.n > 1 and raw.value in (0.0, 1.0):
            won = "all" if raw.value else "none"
            sentence = f"{what[0].upper()}{what[1:]} won {won} of {raw.n:,} decided comparisons. {sentence}"
        return Bias(estimate, log_odds, None, raw, raw_p, sentence)
    value, low, high = (float(expit(x)) if not math.isnan(x) else NAN for x in
                        (log_odds.value, log_odds.low, log_odds.high))  # fmt: skip
    estimate = Estimate(value, low, high, log_odds.n, log_odds.note)
    sentence = f"Between equal systems {what} wins {_percent(value)} of the decided comparisons"
    if estimate.has_interval and p is not None:
        shown = "< .001" if p < 0.001 else f"= {p:.3f}".replace("0.", ".")
        sentence += f" ({100 * low:.1f} to {100 * high:.1f}; p {shown})"
    return Bias(estimate, log_odds, p, raw, raw_p, sentence + ".")


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
