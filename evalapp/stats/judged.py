"""Judgements of one aspect as columns, for everything that asks about raters rather than systems: agreement, reports of
raters, calibration, components of variance. Reading them is the caller's matter; tables are in `rater_tables`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.agreement import Scale
from evalapp.stats.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.normalise import RatingMethod, normalise_ratings

#: What a campaign appends to a rater's key when the same person judges the same thing again.
REPEAT = re.compile(r"#\d+$")
FLIPPED = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class Judged:
    """Columns of equal length, one row per judgement. Codes follow sorted names (`units`, `raters`, ...).

    `value`: numbers, or verdicts as text with the sides in a canonical order. `unit`: what was judged. `item`, `system`
    (-1 where there is no single one) and `source` (a campaign, or "" for uploads) of the unit; `rater` is the person,
    `repeat` marks a judgement of something the same person had judged before. `seconds` and `at` (seconds since 1970)
    are nan where nobody recorded them.
    """

    value: NDArray[Any]
    unit: IntArray
    item: IntArray
    system: IntArray
    rater: IntArray
    repeat: BoolArray
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

    def only(self, rows: BoolArray) -> Judged:
        names = ("value", "unit", "item", "system", "rater", "repeat", "source", "seconds", "at", "simulated")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def first_judgements(self) -> Judged:
        """Without repeats: a person is no second rater of what they rated."""
        return self.only(~self.repeat) if self.repeat.any() else self


def compare_as(columns: Judged, method: RatingMethod) -> tuple[Judged, int]:
    """The judgements as agreement is asked for: ratings as given (`raw`), as z-scores or as ranks within item and rater
    (`normalise_ratings`); and how many are left out. What a rater rated alone of its item has no rank: as 1/2 it would
    count as agreement with everybody else who rated one thing. Verdicts stay as they are. Wants first judgements only.
    """
    if method == "raw" or not columns.is_numeric or not len(columns):
        return columns, 0
    values = normalise_ratings(columns.value, columns.item, columns.rater, method=method)
    kept = np.ones(len(columns), dtype=np.bool_)
    if method == "rank":
        _, row, sizes = np.unique(
            np.stack([columns.item, columns.rater]), axis=1, return_inverse=True, return_counts=True
        )
        kept = sizes[row.ravel()] > 1
    return replace(columns.only(kept), value=values[kept]), int((~kept).sum())


def split_repeat(key: str, known: Collection[str]) -> tuple[str, bool]:
    """The person behind a rater's key, and whether the key stands for their repeats: `r7#2` is `r7` again where there
    is an `r7`."""
    base = REPEAT.sub("", key)
    return (base, True) if base != key and base in known else (key, False)


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
    known = set(rater)
    people = {key: split_repeat(key, known) for key in known}
    units, _ = _coded(unit)
    items, _ = _coded(item)
    systems, system_names = _coded(system)
    if system_names and system_names[0] == "":
        systems, system_names = systems - 1, system_names[1:]
    keys, key_names = _coded(rater)
    persons, person_names = _coded([people[key][0] for key in key_names])
    sources, source_names = _coded(source)
    order = np.lexsort((keys, units))
    return Judged(
        value=np.asarray(value, dtype=np.float64 if numeric else np.str_)[order],
        unit=units[order],
        item=items[order],
        system=systems[order],
        rater=persons[keys][order] if len(keys) else keys,
        repeat=np.array([people[key][1] for key in key_names], dtype=bool)[keys][order]
        if len(keys)
        else np.zeros(0, bool),
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
