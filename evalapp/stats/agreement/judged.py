"""Columns of judgements for a single aspect, for statistics about raters: agreement, rater reports, calibration,
variance components."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.agreement.krippendorff import Scale
from evalapp.stats.agreement.normalise import RatingMethod, normalise_ratings
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray

#: Suffixes that campaigns append to a rater's key: `@12` where campaign 12 asks the same question as another one, `#2`
#: for a repeated judgement by the same person.
AGAIN = re.compile(r"(?:@([0-9]+))?(?:#([0-9]+))?\Z")
REPEAT = re.compile(r"#[0-9]+\Z")
#: Names that this software gives raters in campaigns and exports; they never end in such a suffix.
MADE = re.compile(r"r-[0-9a-z]{8}|rater-[0-9a-f]{10}")
FLIPPED = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class RaterJudgements:
    """Columns of equal length, one row per judgement. Codes index sorted names (`units`, `raters`, ...).

    `value`: numbers, or verdicts as text with the sides in canonical order. `unit`: the judged unit. `item`,
    `system` (-1 if there is no single one) and `source` (a campaign, or "" for uploads) belong to the unit; `rater`
    is the person. `seconds` and `at` (seconds since 1970) are nan if not recorded. Rows are sorted by unit and
    rater, repeated judgements by the same person in the order of their keys (`resolve_raters`)."""

    value: NDArray[Any]
    unit: IntArray
    item: IntArray
    system: IntArray
    rater: IntArray
    source: IntArray
    seconds: FloatArray
    at: FloatArray
    simulated: BoolArray
    raters: tuple[str, ...]
    systems: tuple[str, ...]
    sources: tuple[str, ...]
    n_filtered: int = 0

    def __len__(self) -> int:
        return len(self.value)

    @property
    def is_numeric(self) -> bool:
        return self.value.dtype.kind == "f"

    @property
    def default_scale(self) -> Scale:
        """Interval for ratings, nominal for verdicts."""
        return "interval" if self.is_numeric else "nominal"

    @property
    def repeat(self) -> BoolArray:
        """Whether the same person had judged the unit before, here or in another campaign."""
        again = np.zeros(len(self), dtype=np.bool_)
        again[1:] = (self.unit[1:] == self.unit[:-1]) & (self.rater[1:] == self.rater[:-1])
        return again

    def only(self, rows: BoolArray) -> RaterJudgements:
        names = ("value", "unit", "item", "system", "rater", "source", "seconds", "at", "simulated")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def first_judgements(self) -> RaterJudgements:
        """Return the judgements without repeats: agreement with oneself is not agreement between raters."""
        repeat = self.repeat
        return self.only(~repeat) if repeat.any() else self


def normalise_judgements(columns: RaterJudgements, method: RatingMethod) -> tuple[RaterJudgements, int]:
    """Return the judgements normalised for agreement, and the number left out.

    `columns`: judgements without repeats.
    `method`: ratings as given (`raw`), z-scores, or ranks within item and rater (`normalise_ratings`). A rating that
    is the rater's only one of its item has no rank: 1/2 would count as agreement with every other rater of a single
    output. Undefined z-scores are left out as well. Verdicts stay unchanged. Requires judgements without repeats."""
    if method == "raw" or not columns.is_numeric or not len(columns):
        return columns, 0
    values = normalise_ratings(columns.value, columns.item, columns.rater, method=method)
    kept = np.isfinite(values)
    if method == "rank":
        _, row, sizes = np.unique(
            np.stack([columns.item, columns.rater]), axis=1, return_inverse=True, return_counts=True
        )
        kept = sizes[row.ravel()] > 1
    return replace(columns.only(kept), value=values[kept]), int((~kept).sum())


#: Reasons why ratings have no value by a method: one rating, several.
_WITHOUT = {
    "rank": (
        "no rank: its rater rated nothing else of the item.",
        "no rank: their raters rated nothing else of the item.",
    ),
    "z": (
        "no z-score and is left out: its rater gave one rating, or equal ratings only.",
        "no z-score and are left out: their raters gave one rating, or equal ratings only.",
    ),
}


#: Reason for no coefficient if ratings without a normalised value leave no pair.
NO_PAIR_LEFT = {
    "z": "no unit has two ratings with a z-score: raters with one rating, or equal ratings only, have none",
    "rank": "no unit has two ratings with a rank: who rated one thing of an item ranks nothing",
}


def explain_missing(n: int, method: str) -> list[str]:
    """Return a sentence on the number of ratings without a value by this method, and why; "" if there are none.

    `n`: number of ratings without a value; `method`: as in `normalise_ratings`."""
    if not n:
        return []
    one, many = _WITHOUT[method]
    return [f"1 rating has {one}" if n == 1 else f"{n:,} ratings have {many}"]


def split_key(key: str, known: Collection[str]) -> tuple[str, tuple[int, int]]:
    """Return the person behind a rater's key, and the numbers of campaign and repeat by which their keys are
    ordered: `r7@12#2` is `r7` if `known` has an `r7`, or if the name is one that this software makes."""
    match = AGAIN.search(key)
    assert match is not None  # the pattern also matches an empty suffix
    base, order = key[: match.start()], (int(match[1] or 0), int(match[2] or 0))
    if base in known or MADE.fullmatch(base):
        return base, order
    once = REPEAT.sub("", key)
    return (once, (0, order[1])) if once in known else (key, (0, 0))


def is_among(key: str, raters: Collection[str]) -> bool:
    """Return whether `raters` contains this key or another key of the same person."""
    return key in raters or AGAIN.sub("", key) in raters or REPEAT.sub("", key) in raters


def resolve_raters(keys: Collection[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the person behind each rater key, and the position of each key among that person's keys.

    A person's judgement of a unit is the one under the key with the lowest position; the others are repeats."""
    known = frozenset(keys)
    split = {key: split_key(key, known) for key in known}
    ordered = sorted(split, key=lambda key: (split[key][1], key))
    return {key: person for key, (person, _) in split.items()}, {key: place for place, key in enumerate(ordered)}


@dataclass(frozen=True, slots=True)
class JudgementColumns:
    """Parallel lists, one entry per judgement, in any order.

    `value`: numbers or verdicts; `unit`, `item`, `system` ("" for none), `rater`: identifiers; `simulated`: not made by
    people; `source`: the campaign, "" for uploads; `seconds`, `at`: nan if not recorded. None: uploads without
    times."""

    value: Sequence[float] | Sequence[str]
    unit: Sequence[str]
    item: Sequence[str]
    system: Sequence[str]
    rater: Sequence[str]
    simulated: Sequence[bool]
    source: Sequence[str] | None = None
    seconds: Sequence[float] | None = None
    at: Sequence[float] | None = None


def collect_judgements(columns: JudgementColumns, *, numeric: bool, n_filtered: int = 0) -> RaterJudgements:
    """Return the judgements in the order of unit and rater, so that the order of the rows does not matter.

    `columns`: the judgements; `numeric`: whether their values are numbers; `n_filtered`: number of judgements that
    filters removed before."""
    n = len(columns.unit)
    people, places = resolve_raters(set(columns.rater))
    units, _ = _coded(columns.unit)
    items, _ = _coded(columns.item)
    systems, system_names = _coded(columns.system)
    if system_names and system_names[0] == "":
        systems, system_names = systems - 1, system_names[1:]
    keys, key_names = _coded(columns.rater)
    named, person_names = _coded([people[key] for key in key_names])
    persons, place = named[keys], np.array([places[key] for key in key_names], dtype=np.int64)[keys]
    sources, source_names = _coded([""] * n if columns.source is None else columns.source)
    seconds, at = (np.full(n, np.nan) if times is None else times for times in (columns.seconds, columns.at))
    order = np.lexsort((place, persons, units))
    return RaterJudgements(
        value=np.asarray(columns.value, dtype=np.float64 if numeric else np.str_)[order],
        unit=units[order],
        item=items[order],
        system=systems[order],
        rater=persons[order],
        source=sources[order],
        seconds=np.asarray(seconds, dtype=np.float64)[order],
        at=np.asarray(at, dtype=np.float64)[order],
        simulated=np.asarray(columns.simulated, dtype=bool)[order],
        raters=person_names,
        systems=system_names,
        sources=source_names,
        n_filtered=n_filtered,
    )


def _coded(names: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    labels = sorted(set(names))
    place = {name: number for number, name in enumerate(labels)}
    return np.fromiter((place[name] for name in names), dtype=np.int64, count=len(names)), tuple(labels)
