"""Quality figures of a running campaign: agreement over time, drift, the current ranking and whether judging could
stop, and preference for a side of the page. The results are plain values for a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.side_figures import FAILED, side_figure
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.planning.power import compute_power
from evalapp.stats.ranking.bias import side_bias
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.connectivity import which_part
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.separation import estimate_separation
from evalapp.stats.ranking.systems import Ranking, rank_by_m1, rank_by_mean
from evalapp.stats.resampling.bootstrap import Bootstrap

Kind: TypeAlias = Literal["likert", "pairwise", "turing"]
Table: TypeAlias = dict[str, Any]

PARTS = 8
RESAMPLES = 200
#: Advice to stop uses 99 % instead of 95 %, because the question is asked repeatedly.
STOP_CONFIDENCE = 0.99
#: The preference for which power is reported: three of five decisive comparisons.
TARGET_PREFERENCE = 0.6
#: Fewer judgements than this are not divided into parts.
LEAST = 24
#: With fewer items, intervals are too narrow for advice to stop: in 200 simulated campaigns each, two equal systems
#: were called settled at 99 % in 48 % of campaigns with 2 items, 26 % with 3, 14 % with 5, 3 % with 10 and 1 % with 20
#: (docs/results/intervals.md).
LEAST_ITEMS = 20


@dataclass(frozen=True)
class CampaignJudgements:
    """Judgements that answer a question, in order of time, without controls, practice, repeats and late answers.

    `value`: ratings, or verdicts with the sides as in the unit (`first` is a, `second` is b). `first`, `second`:
    indices into `systems`, -1 where a side is a reference or absent. `swapped`: True where the page showed the sides
    exchanged."""

    kind: Kind
    value: NDArray[Any]
    unit: IntArray
    item: IntArray
    first: IntArray
    second: IntArray
    swapped: BoolArray
    seconds: FloatArray
    systems: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.value)


def watch(judged: CampaignJudgements, *, planned: int) -> Table:
    """Return all quality figures for a question as JSON-safe values. `planned`: number of judgements in the full
    plan.

    `judged`: the judgements."""
    result: Table = {
        "growth": [], "drift": {"rows": [], "words": "", "note": FAILED}, "ranking": [], "parts": "",
        "advice": {"settled": False, "words": ""}, "power": None, "precision": None, "side": None,
    }  # fmt: skip
    with side_figure("The ranking so far"):
        ranking = _ranking(judged, 0.95)
        result |= {"ranking": _rows(ranking, judged.systems), "parts": _parts(ranking, judged.systems)}
        with side_figure("The margin of a system"):
            result["precision"] = precision(ranking, done=len(judged), planned=planned)
    with side_figure("Agreement as it grows"):
        result["growth"] = growth(judged)
    with side_figure("Answers over time"):
        result["drift"] = drift(judged)
    with side_figure("The advice to stop"):
        result["advice"] = advice(judged, planned=planned)
    with side_figure("The power so far"):
        result["power"] = power_left(judged, planned=planned)
    with side_figure("The bias of the side"):
        result["side"] = sides(judged)
    return result


def growth(judged: CampaignJudgements) -> list[Table]:
    """Return Krippendorff's alpha after each eighth of the judgements (interval scale for ratings, nominal for
    verdicts)."""
    n = len(judged)
    ends = sorted({round(n * part / PARTS) for part in range(1, PARTS + 1)}) if n >= LEAST else [n]
    parts = ((end, judged.value[:end], judged.unit[:end], judged.item[:end]) for end in ends)
    return [{"at": end, **agreement(judged.kind, *columns).as_dict()} for end, *columns in parts]


def agreement(kind: Kind, value: ArrayLike, unit: ArrayLike, item: ArrayLike) -> Estimate:
    """Return Krippendorff's alpha of judgements given as in `CampaignJudgements`, with an interval over items.

    `kind`: ratings or comparisons; `value`, `unit`, `item`: (n,) columns."""
    scale: Literal["interval", "nominal"] = "interval" if kind == "likert" else "nominal"
    return krippendorff_alpha(unit, value, scale=scale, bootstrap=Bootstrap(cluster=item, resamples=RESAMPLES))


def compute_points(judged: CampaignJudgements) -> FloatArray:
    """Return ratings unchanged; for verdicts 1 where the side shown first was better, 0.5 for neither and 0 for the
    second."""
    if judged.kind == "likert":
        return np.asarray(judged.value, dtype=np.float64)
    plain = np.select([judged.value == "a", judged.value == "b"], [1.0, 0.0], 0.5)
    return np.where(judged.swapped, 1.0 - plain, plain)


def drift(judged: CampaignJudgements) -> Table:
    """Return the mean of each eighth of the judgements in order of time, and the median seconds. `words` reports where
    the later half differs significantly from the earlier half (two-sided test at 1 %)."""
    n = len(judged)
    if n < LEAST:
        return {"rows": [], "words": "", "note": f"fewer than {LEAST} judgements"}
    points = compute_points(judged)
    rows = []
    for part in np.array_split(np.arange(n), PARTS):
        own, times = points[part], judged.seconds[part]
        half = 1.96 * float(own.std(ddof=1)) / math.sqrt(len(own)) if len(own) > 1 else math.nan
        times = times[np.isfinite(times)]
        rows.append(
            {
                "at": int(part[-1]) + 1,
                "value": float(own.mean()),
                "low": _finite(float(own.mean()) - half),
                "high": _finite(float(own.mean()) + half),
                "seconds": float(np.median(times)) if len(times) else None,
            }
        )
    return {"rows": rows, "words": _moved(points, judged), "note": ""}


def _moved(points: FloatArray, judged: CampaignJudgements) -> str:
    early, late = np.array_split(points, 2)
    error = math.sqrt(early.var(ddof=1) / len(early) + late.var(ddof=1) / len(late))
    change = float(late.mean() - early.mean())
    what = "The mean rating" if judged.kind == "likert" else "The share for the first side"
    moved = ""
    if error > 0 and abs(change) / error > 2.576:
        moved = f"{what} changed by {change:+.2f} from the first to the second half of the judgements."
    times = [half[np.isfinite(half)] for half in np.array_split(judged.seconds, 2)]
    if min(len(times[0]), len(times[1])) >= LEAST // 2:
        before, after = float(np.median(times[0])), float(np.median(times[1]))
        if before > 0 and after < before / 2:
            moved += f" Median time fell from {before:.0f} s to {after:.0f} s: annotators hurry or have become faster."
    return moved.strip()


def _ranking(judged: CampaignJudgements, confidence: float) -> Ranking:
    if judged.kind == "likert":
        value = np.asarray(judged.value, dtype=np.float64)
        return rank_by_mean(
            value, judged.item, judged.first, bootstrap=Bootstrap(resamples=RESAMPLES, confidence=confidence)
        )
    if judged.kind == "turing":
        return rank_by_m1(
            judged.item, judged.first, judged.value, bootstrap=Bootstrap(resamples=RESAMPLES, confidence=confidence)
        )
    return rank_by_comparisons(
        PairwiseComparisons(judged.first, judged.second, judged.value, item=judged.item),
        model=ComparisonModel(method="davidson", prior_sd=2.0),
        bootstrap=Bootstrap(confidence=confidence),
    )


def _rows(ranking: Ranking, systems: Sequence[str]) -> list[Table]:
    return [
        {
            "system": systems[int(row.system)],
            **row.estimate.as_dict(),
            "rank": row.rank if row.is_ranked else None,
            "rank_low": row.rank_low,
            "rank_high": row.rank_high,
            "judgements": row.n_ratings,
        }
        for row in ranking.systems
    ]


def _parts(ranking: Ranking, systems: Sequence[str]) -> str:
    """Return a sentence for comparisons that do not link all systems: only the largest linked part is ranked."""
    parts = (ranking.extras.get("connectivity") or {}).get("components", [])
    if len(parts) < 2:
        return ""
    if len(parts[0]) < 2:
        return "No two systems were compared with a verdict that ranks them, so none is ranked."
    first, *others = (", ".join(systems[int(code)] for code in part) for part in parts)
    return (
        f"The systems fall into {len(parts)} parts that were never compared with each other, so only "
        f"{which_part(parts)} is ranked: {first}. Not ranked: {'; '.join(others)}."
    )


def advice(judged: CampaignJudgements, *, planned: int) -> Table:
    """Return a sentence on whether the ranking is settled, so that the campaign could stop; `settled` is decided at 99
    %."""
    if len(judged) < LEAST:
        return {"settled": False, "words": f"Advice on stopping appears after {LEAST} judgements."}
    if (items := len(np.unique(judged.item))) < LEAST_ITEMS:
        words = f"Advice on stopping needs judgements of {LEAST_ITEMS} items; "
        return {"settled": False, "words": f"{words}{items} have been judged."}
    rows = _ranking(judged, STOP_CONFIDENCE).systems
    rated = [row for row in rows if row.is_ranked]
    if len(rated) < 2:
        return {"settled": False, "words": "A ranking needs at least two systems with judgements."}
    names = judged.systems
    open_ranks = [row for row in rated if row.rank_low != row.rank_high]
    if not open_ranks and len(rated) == len(rows):
        left = max(0, planned - len(judged))
        rest = f" {left:,} judgements would be saved." if left else ""
        return {
            "settled": True,
            "words": f"All {len(rated)} systems differ significantly at 99 %; the campaign could stop.{rest}",
        }
    first, second = rated[0], rated[1]
    if first.rank_high < second.rank_low:
        sentence = f"Rank 1 ({names[int(first.system)]}) is settled at 99 %; ranks below are not."
    else:
        sentence = (
            f"Ranks 1 and 2 ({names[int(first.system)]}, {names[int(second.system)]}) do not differ significantly yet."
        )
    if judged.kind == "pairwise" and first.rank_high >= second.rank_low:
        separation = estimate_separation(
            PairwiseComparisons(judged.first, judged.second, judged.value, item=judged.item),
            prior_sd=2.0,
            confidence=STOP_CONFIDENCE,
        )
        sentence = f"{sentence} {separation.sentence}".strip()
    return {"settled": False, "words": sentence}


def power_left(judged: CampaignJudgements, *, planned: int) -> Table | None:
    """Return the power of comparisons to detect a preference of 60 % between two systems, with the decisive verdicts
    that a pair of systems has now and will have at the end."""
    if judged.kind != "pairwise" or not len(judged):
        return None
    decisive = (judged.value == "a") | (judged.value == "b")
    low, high = np.minimum(judged.first, judged.second), np.maximum(judged.first, judged.second)
    _, counts = np.unique(np.stack([low, high])[:, decisive], axis=1, return_counts=True)
    if not len(counts):
        return None
    each = float(np.median(counts))
    end = each * max(planned, len(judged)) / len(judged)
    return {
        "preference": TARGET_PREFERENCE,
        "each_now": each,
        "each_end": end,
        "now": compute_power("preference", TARGET_PREFERENCE, max(1, round(each))),
        "end": compute_power("preference", TARGET_PREFERENCE, max(1, round(end))),
    }


def precision(ranking: Ranking, *, done: int, planned: int) -> Table | None:
    """Return half the width of the median system's interval, now and projected to the end of the plan (by 1 / sqrt
    n)."""
    halves = [(row.estimate.high - row.estimate.low) / 2 for row in ranking.systems if row.estimate.has_interval]
    if not halves or not done:
        return None
    now = float(np.median(halves))
    return {"now": now, "end": now * math.sqrt(done / max(planned, done))}


def sides(judged: CampaignJudgements) -> Table | None:
    """Return whether annotators favour the side shown first on the page; None for ratings."""
    if judged.kind == "likert" or not len(judged):
        return None
    shown = np.where(judged.swapped, _turned(judged.value), judged.value)
    left, right = int((shown == "a").sum()), int((shown == "b").sum())
    result: Table = {"left": left, "right": right, "words": ""}
    if judged.kind == "pairwise" and left + right:
        one = np.where(judged.swapped, judged.second, judged.first)
        two = np.where(judged.swapped, judged.first, judged.second)
        bias = side_bias(one, two, shown, item=judged.item)
        result |= {**bias.estimate.as_dict(), "p": bias.p, "words": bias.sentence}
    return result


def one_sided(left: int, right: int, *, raters: int) -> list[str]:
    """Return a reason to review an annotator who chose the same side of the page in at least three quarters of the
    comparisons, if that is significant over all `raters` (exact binomial test at 5 %, Bonferroni).

    `left`, `right`: how often the annotator chose each side; `raters`: number of annotators."""
    from scipy.stats import binomtest

    n, most = left + right, max(left, right)
    if not n or most < 0.75 * n or binomtest(most, n).pvalue >= 0.05 / max(raters, 1):
        return []
    return [f"Chose the {'first' if left > right else 'second'} side in {most / n:.0%} of {n} decided comparisons."]


def _turned(verdict: NDArray[Any]) -> NDArray[Any]:
    return np.select([verdict == "a", verdict == "b"], ["b", "a"], verdict)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
