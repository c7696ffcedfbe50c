"""Training pairs from people's judgements: comparisons as they are, ratings by their difference.

Explained in docs/explanation/evaluators/comparative.md#human-pairs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, cast

import numpy as np

from evalapp.stats.agreement.judged import resolve_raters
from evalapp.stats.agreement.normalise import Z_METHODS, RatingMethod
from scoring.ml.evaluators.comparative.pairs import BETTER_TARGET, TIE_TARGET, WORSE_TARGET, Pair, Target
from scoring.ml.training.gold import Key, RatedOutputs, collect_compared_pairs, collect_rated_outputs, output_key
from scoring.ml.training.job import RowTracker, without_progress
from scoring.ml.types import Dataset, Record

#: An eighth of the scale: 0.5 on a scale from 1 to 5.
TAU_SHARE = 1 / 8
TAU_STANDARDISED = 0.5
# Up to this many pairs are listed before drawing; beyond, pairs are drawn directly.
_LISTED = 400_000
_Key: TypeAlias = tuple[Key, str]
# Means of whole numbers differ by tau up to rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class HumanPairs:
    """Pairs with human verdicts. `compared` and `rated` count the pairs of each origin, `simulated` the simulated
    judgements behind them, `identical` the pairs left out because both texts are equal, `tied` those left out as ties,
    `empty` the judged outputs without a text, which are worst by definition."""

    pairs: tuple[Pair, ...]
    compared: int
    rated: int
    simulated: int
    identical: int
    tied: int = 0
    empty: int = 0

    @property
    def decided(self) -> int:
        """The number of pairs whose most frequent verdict is not a tie."""
        return sum(pair.target[1] < max(pair.target[0], pair.target[2]) for pair in self.pairs)


@dataclass(frozen=True)
class HumanSettings:
    """`rating_pairs`: context, rater, both or all; `tau` None is estimated from the data; at most `most` pairs from
    ratings. With both, `same_context` is the share of pairs within one context, if there are enough."""

    ratings: str
    rating_pairs: str
    tau: float | None
    most: int
    tie: bool
    same_context: float = 0.8


def human_pairs(
    dataset: Dataset,
    aspect: str,
    settings: HumanSettings,
    rng: np.random.Generator,
    taus: Taus | None = None,
    track: RowTracker = without_progress,
) -> HumanPairs:
    """Return the human pairs of an `aspect` in a `dataset`. Without ties (`settings`), pairs with tied verdicts only
    are left out.

    `rng` draws pairs if there are too many. `taus` are thresholds of `estimate_taus`, by default of this dataset; a
    held-out part takes those of the training part. `track` reports progress.
    """
    empty: set[Key] = set()
    compared, simulated, identical = _from_comparisons(dataset, aspect, empty, track)
    rated = _with_texts(collect_rated_outputs(dataset, aspect, cast(RatingMethod, settings.ratings), track), empty)
    by_rating: list[Pair] = []
    if len(rated.records) > 1:
        simulated += rated.simulated
        by_rating, same = _from_ratings(
            dataset,
            aspect,
            rated,
            settings,
            rng,
            estimate_taus(dataset, aspect, settings) if taus is None else taus,
            track,
        )
        identical += same
    result = len(compared) + len(by_rating)
    compared, by_rating = _without_ties(compared, settings.tie), _without_ties(by_rating, settings.tie)
    pairs = (*compared, *by_rating)
    return HumanPairs(
        pairs, len(compared), len(by_rating), simulated, identical, tied=result - len(pairs), empty=len(empty)
    )


def _with_texts(rated: RatedOutputs, empty: set[Key]) -> RatedOutputs:
    """The rated outputs without blank ones, whose keys are added to `empty`."""
    places = [place for place, record in enumerate(rated.records) if record.text.strip()]
    if len(places) == len(rated.records):
        return rated
    empty.update(output_key(record) for record in rated.records if not record.text.strip())
    return RatedOutputs(
        [rated.records[place] for place in places], [rated.values[place] for place in places], rated.simulated
    )


def _without_ties(pairs: list[Pair], tie: bool) -> list[Pair]:
    if tie:
        return pairs
    kept = []
    for a, b, (worse, _, better) in pairs:
        if worse + better > 0:
            kept.append(Pair(a, b, (worse / (worse + better), 0.0, better / (worse + better))))
    return kept


def _from_comparisons(dataset: Dataset, aspect: str, empty: set[Key], track: RowTracker) -> tuple[list[Pair], int, int]:
    """One pair per two outputs; its target is the distribution of human verdicts. Pairs with a blank text are left out,
    and its key is added to `empty`."""
    votes: dict[tuple[_Key, _Key], list[float]] = {}
    sides: dict[tuple[_Key, _Key], tuple[Record, Record]] = {}
    simulated = 0
    for row in track(collect_compared_pairs(dataset, aspect, track)):
        a, b, sign = row.a, row.b, row.sign
        blank = [output_key(record) for record in (a, b) if not record.text.strip()]
        if blank:
            empty.update(blank)
            continue
        if repr((output_key(a), a.text)) > repr((output_key(b), b.text)):
            a, b, sign = b, a, -sign
        key = ((output_key(a), a.text), (output_key(b), b.text))
        sides.setdefault(key, (a, b))
        votes.setdefault(key, [0.0, 0.0, 0.0])[sign + 1] += 1
        simulated += row.simulated
    pairs, identical = [], 0
    for key, counts in votes.items():
        a, b = sides[key]
        if a.text == b.text:
            identical += 1
            continue
        total = sum(counts)
        pairs.append(Pair(a, b, (counts[0] / total, counts[1] / total, counts[2] / total)))
    return pairs, simulated, identical


def estimate_tau(dataset: Dataset, aspect: str, method: str, several: bool) -> float:
    """Return the difference up to which two ratings of an `aspect` count as tied.

    0 for integer ratings by one person. For means of `several` ratings and for fractional ratings, an eighth of the
    scale for raw ratings and ranks (0 to 1), half a standard deviation for z-scores; `method` says how ratings are made
    comparable. The scale is that of the `dataset`.
    """
    if not several:
        return 0.0
    if method in Z_METHODS:
        return TAU_STANDARDISED
    if method == "rank":
        return TAU_SHARE
    known = next((row for row in dataset.aspects if row.name == aspect), None)
    if known is not None and known.minimum is not None and known.maximum is not None:
        return TAU_SHARE * (known.maximum - known.minimum)
    values = [row.value for row in dataset.ratings if row.aspect == aspect]
    return TAU_SHARE * (max(values) - min(values)) if values else 0.0


@dataclass(frozen=True)
class Taus:
    """Tie thresholds between two texts, at least one of which has several ratings; between texts with one rating each;
    and between two ratings by the same person."""

    several: float
    single: float
    own: float


def estimate_taus(dataset: Dataset, aspect: str, settings: HumanSettings) -> Taus:
    """Return the thresholds for an `aspect` of a `dataset`: the option `tau` of the `settings` for every pair, else
    estimates."""
    if settings.tau is not None:
        return Taus(settings.tau, settings.tau, settings.tau)
    rows = [row for row in dataset.ratings if row.aspect == aspect and row.dialogue is None]
    # A fractional rating was a mean before it was uploaded.
    means = any(not float(row.value).is_integer() for row in rows)
    return Taus(
        several=estimate_tau(dataset, aspect, settings.ratings, several=True),
        single=estimate_tau(dataset, aspect, settings.ratings, several=means),
        own=estimate_tau(dataset, aspect, "raw", several=means),
    )


def _verdict(difference: float, tau: float) -> Target:
    if difference > tau + _ROUNDING:
        return BETTER_TARGET
    return WORSE_TARGET if difference < -tau - _ROUNDING else TIE_TARGET


def _from_ratings(
    dataset: Dataset,
    aspect: str,
    rated: RatedOutputs,
    settings: HumanSettings,
    rng: np.random.Generator,
    taus: Taus,
    track: RowTracker,
) -> tuple[list[Pair], int]:
    records, means = rated.records, rated.means()
    alone = [len(values) == 1 for values in rated.values]

    def pair(i: int, j: int) -> tuple[int, int, float, float]:
        # The threshold depends on the pair: other texts may have other numbers of ratings.
        return (i, j, float(means[i] - means[j]), taus.single if alone[i] and alone[j] else taus.several)

    result: list[tuple[int, int, float, float]] = []
    if settings.rating_pairs in ("context", "both"):
        of_item: dict[str, list[int]] = defaultdict(list)
        for place, record in enumerate(records):
            of_item[record.item].append(place)
        for places in track(list(of_item.values())):
            result += [pair(i, j) for i, j in combinations(places, 2)]
    if settings.rating_pairs in ("rater", "both"):
        share = settings.same_context
        apart = round(len(result) * (1 - share) / share) if result and share > 0 else settings.most
        anywhere = settings.rating_pairs == "rater"
        result += _same_rater(
            dataset, aspect, rated, taus.own, min(apart, settings.most), rng, track, anywhere=anywhere
        )
    if settings.rating_pairs == "all":
        result += [pair(i, j) for i, j in _drawn_pairs(len(records), settings.most, rng)]
    if len(result) > settings.most:
        chosen = np.sort(rng.choice(len(result), settings.most, replace=False))
        result = [result[place] for place in chosen.tolist()]
    pairs, identical = [], 0
    for i, j, difference, tau in track(result):
        if records[i].text == records[j].text:
            identical += 1
        else:
            pairs.append(Pair(records[i], records[j], _verdict(difference, tau)))
    return pairs, identical


def _same_rater(
    dataset: Dataset,
    aspect: str,
    rated: RatedOutputs,
    tau: float,
    most: int,
    rng: np.random.Generator,
    track: RowTracker,
    *,
    anywhere: bool,
) -> list[tuple[int, int, float, float]]:
    """Pairs of texts rated by the same person, in any campaign, with that person's two ratings: of different contexts,
    or `anywhere`. Of repeated ratings the first counts."""
    place_of = {output_key(record): place for place, record in enumerate(track(rated.records))}
    rows = [row for row in dataset.ratings if row.aspect == aspect and row.dialogue is None]
    people, order = resolve_raters({row.rater for row in rows})
    first: dict[str, dict[int, float]] = defaultdict(dict)
    for row in track(sorted(rows, key=lambda row: order[row.rater])):
        place = place_of.get((row.item or "", row.system or "", row.step))
        if place is not None:
            first[people[row.rater]].setdefault(place, row.value)
    of_rater = {person: list(values.items()) for person, values in first.items()}
    result: list[tuple[int, int, float, float]] = []
    if most < 1:
        return result
    share = -(-most // max(1, len(of_rater)))
    for rater in sorted(of_rater):
        own = of_rater[rater]
        for i, j in _drawn_pairs(len(own), share, rng):
            (one, x), (two, y) = own[i], own[j]
            if anywhere or rated.records[one].item != rated.records[two].item:
                result.append((one, two, x - y, tau))
    if len(result) <= most:
        return result
    return [result[place] for place in np.sort(rng.choice(len(result), most, replace=False)).tolist()]


def _drawn_pairs(n: int, most: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """At most `most` distinct pairs i < j of n, or all if there are fewer."""
    if n < 2:
        return []
    total = n * (n - 1) // 2
    if total <= most:
        return list(combinations(range(n), 2))
    if total <= _LISTED:
        every = list(combinations(range(n), 2))
        return [every[place] for place in np.sort(rng.choice(total, most, replace=False)).tolist()]
    drawn: dict[tuple[int, int], None] = {}
    while len(drawn) < most:
        for i, j in rng.integers(n, size=(most, 2)).tolist():
            if i != j and len(drawn) < most:
                drawn[(min(i, j), max(i, j))] = None
    return list(drawn)
