"""Judgements of one aspect as columns, for everything that asks about raters rather than systems: agreement, reports of
raters, calibration, components of variance. Reading them is the caller's matter; tables are in `rater_tables`."""

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

#: What campaigns append to a rater's key: `@12` where campaign 12 asks what another one asks, too, `#2` where the same
#: person judges the same thing again.
AGAIN = re.compile(r"(?:@([0-9]+))?(?:#([0-9]+))?\Z")
REPEAT = re.compile(r"#[0-9]+\Z")
#: What this software calls people, in campaigns and in exports: no such name ends like that by itself.
MADE = re.compile(r"r-[0-9a-z]{8}|rater-[0-9a-f]{10}")
FLIPPED = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class Judged:
    """Columns of equal length, one row per judgement. Codes follow sorted names (`units`, `raters`, ...).

    `value`: numbers, or verdicts as text with the sides in a canonical order. `unit`: what was judged. `item`, `system`
    (-1 where there is no single one) and `source` (a campaign, or "" for uploads) of the unit; `rater` is the person.
    `seconds` and `at` (seconds since 1970) are nan where nobody recorded them. Rows are sorted by unit and rater, what
    one person said of one unit in the order of their keys (`people_of`).
    """

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
    def usual_scale(self) -> Scale:
        """Interval for ratings, nominal for verdicts."""
        return "interval" if self.is_numeric else "nominal"

    @property
    def repeat(self) -> BoolArray:
        """Judgements of something that the same person had judged before, here or in another campaign."""
        again = np.zeros(len(self), dtype=np.bool_)
        again[1:] = (self.unit[1:] == self.unit[:-1]) & (self.rater[1:] == self.rater[:-1])
        return again

    def only(self, rows: BoolArray) -> Judged:
        names = ("value", "unit", "item", "system", "rater", "source", "seconds", "at", "simulated")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def first_judgements(self) -> Judged:
        """Without repeats: a person is no second rater of what they rated."""
        repeat = self.repeat
        return self.only(~repeat) if repeat.any() else self


def compare_as(columns: Judged, method: RatingMethod) -> tuple[Judged, int]:
    """The judgements as agreement is asked for: ratings as given (`raw`), as z-scores or as ranks within item and rater
    (`normalise_ratings`); and how many are left out. What a rater rated alone of its item has no rank: as 1/2 it would
    count as agreement with everybody else who rated one thing. Undefined z-scores are left out, too. Verdicts stay as
    they are. Wants first judgements only."""
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


#: Why a rating has no value by a method: of one rating, of several.
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


#: Why a coefficient has no value where ratings without a value by a method leave no pair.
NO_PAIR_LEFT = {
    "z": "no unit has two ratings with a z-score: raters with one rating, or equal ratings only, have none",
    "rank": "no unit has two ratings with a rank: who rated one thing of an item ranks nothing",
}


def without_value(n: int, method: str) -> list[str]:
    """The sentence that says how many ratings have no value by this method, and why; none where all have one."""
    if not n:
        return []
    one, many = _WITHOUT[method]
    return [f"1 rating has {one}" if n == 1 else f"{n:,} ratings have {many}"]


def split_key(key: str, known: Collection[str]) -> tuple[str, tuple[int, int]]:
    """The person behind a rater's key, and the numbers of campaign and repeat by which their keys follow each other:
    `r7@12#2` is `r7` where `known` has an `r7`, or where the name is one that this software makes."""
    found = AGAIN.search(key)
    assert found is not None  # it matches the empty end of every key
    base, order = key[: found.start()], (int(found[1] or 0), int(found[2] or 0))
    if base in known or MADE.fullmatch(base):
        return base, order
    once = REPEAT.sub("", key)
    return (once, (0, order[1])) if once in known else (key, (0, 0))


def is_among(key: str, raters: Collection[str]) -> bool:
    """Whether a rater's key is one of these, or the same person once more."""
    return key in raters or AGAIN.sub("", key) in raters or REPEAT.sub("", key) in raters


def people_of(keys: Collection[str]) -> tuple[dict[str, str], dict[str, int]]:
    """The person behind each of the raters' keys, and the places of the keys: what somebody said of one thing under the
    key of the lowest place is their judgement of it, all else they said of it repeats it."""
    known = frozenset(keys)
    split = {key: split_key(key, known) for key in known}
    ordered = sorted(split, key=lambda key: (split[key][1], key))
    return {key: person for key, (person, _) in split.items()}, {key: place for place, key in enumerate(ordered)}


def collect(
    *,
    value: Sequence[float] | Sequence[str],
    unit: Sequence[str],
    item: Sequence[str],
    system: Sequence[str],
    rater: Sequence[str],
    source: Sequence[str],
    seconds: Sequence[float],
    at: Sequence[float],
    simulated: Sequence[bool],
    numeric: bool,
    n_filtered: int = 0,
) -> Judged:
    """Columns of names and values as `Judged`, ordered by unit and rater, so that nothing depends on the order of rows.
    An empty `system` is none."""
    people, places = people_of(set(rater))
    units, _ = _coded(unit)
    items, _ = _coded(item)
    systems, system_names = _coded(system)
    if system_names and system_names[0] == "":
        systems, system_names = systems - 1, system_names[1:]
    keys, key_names = _coded(rater)
    named, person_names = _coded([people[key] for key in key_names])
    persons, place = named[keys], np.array([places[key] for key in key_names], dtype=np.int64)[keys]
    sources, source_names = _coded(source)
    order = np.lexsort((place, persons, units))
    return Judged(
        value=np.asarray(value, dtype=np.float64 if numeric else np.str_)[order],
        unit=units[order],
        item=items[order],
        system=systems[order],
        rater=persons[order],
        source=sources[order],
        seconds=np.asarray(seconds, dtype=np.float64)[order],
        at=np.asarray(at, dtype=np.float64)[order],
        simulated=np.asarray(simulated, dtype=bool)[order],
        raters=person_names,
        systems=system_names,
        sources=source_names,
        n_filtered=n_filtered,
    )


def _coded(names: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    labels = sorted(set(names))
    place = {name: number for number, name in enumerate(labels)}
    return np.fromiter((place[name] for name in names), dtype=np.int64, count=len(names)), tuple(labels)
