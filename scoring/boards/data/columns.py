"""What people said and what evaluators gave, as columns that the tables are computed from. Where the rows come from (a
database, the files of an export) is the caller's matter; numbers of labels follow their names, so that draws and sums
are the same wherever the rows come from."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.agreement.judged import FLIPPED, resolve_raters
from evalapp.stats.agreement.normalise import normalise_ratings
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray

Subset: TypeAlias = Literal["all", "machine", "no-reference"]
SUBSETS: tuple[Subset, ...] = ("all", "machine", "no-reference")

#: The system of a dialogue that names none.
NO_SYSTEM = "(no system)"

#: Which kinds of system a subset leaves out.
LEFT_OUT: dict[str, frozenset[str]] = {
    "all": frozenset(),
    "machine": frozenset({"human", "reference", "control"}),
    "no-reference": frozenset({"reference"}),
}


@dataclass(frozen=True)
class Unit:
    """A system at a training step: what a leaderboard ranks. `step` is null where the system has no checkpoints."""

    name: str
    step: int | None
    kind: str

    @property
    def label(self) -> str:
        return self.name if self.step is None else f"{self.name} @ {self.step}"


@dataclass
class Units:
    """Numbers systems at steps as they turn up in rows; `units[code]` is the unit. `systems` gives name and kind of
    whatever the rows call a system."""

    systems: Mapping[Any, tuple[str, str]]
    units: list[Unit] = field(default_factory=list)
    codes: dict[tuple[Hashable, int | None], int] = field(default_factory=dict)

    def code(self, system: Hashable, step: int | None) -> int:
        key = (system, step)
        if key not in self.codes:
            name, kind = self.systems[system]
            self.codes[key] = len(self.units)
            self.units.append(Unit(name, step, kind))
        return self.codes[key]

    def sort(self) -> IntArray:
        """Number the units by name and step (none before 0); returns the new code of every old one."""
        units = self.units
        order = sorted(range(len(units)), key=lambda k: (units[k].name, units[k].step is not None, units[k].step or 0))
        self.units = [units[k] for k in order]
        new = np.empty(len(order), dtype=np.int64)
        new[order] = np.arange(len(order))
        self.codes = {key: int(new[code]) for key, code in self.codes.items()}
        return new

    def wanted(self, subset: str) -> BoolArray:
        return np.array([unit.kind not in LEFT_OUT[subset] for unit in self.units], dtype=bool)


#: The part of items that do not say theirs.
MISSING = "(not said)"
#: Characters of a name that each row of a column has room for.
WIDE = 100


def part_column(values: Iterable[Any]) -> NDArray[Any]:
    """The parts as texts, `MISSING` for none. Long texts are not made room for in every row."""
    names = [MISSING if value is None else str(value) for value in values]
    wide = max(map(len, names), default=0) > WIDE
    return np.array(names, dtype=np.object_ if wide else np.str_)


class Labels:
    """Numbers labels as they turn up. Sorted at the end, so that draws and ties do not depend on the order in which
    the rows came."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, label: str) -> int:
        return self.codes.setdefault(label, len(self.codes))

    @property
    def names(self) -> tuple[str, ...]:
        """The labels in the order of their sorted numbers."""
        return tuple(sorted(self.codes))

    def sort(self) -> IntArray:
        """The new code of every old one."""
        new = np.empty(len(self.codes), dtype=np.int64)
        new[[self.codes[label] for label in self.names]] = np.arange(len(self.codes))
        return new


def number_raters(rater: IntArray, n_raters: int, what: Sequence[IntArray]) -> IntArray:
    """The new number of every rater, by what they said and not by what they are called: an export may call them
    otherwise, and draws of raters must be the same there. `what`: numbers from 0 that tell what each row says."""
    order = np.lexsort((*reversed(what), rater))
    said = np.stack([column[order] for column in what], axis=1).astype(">i8")
    ends = np.searchsorted(rater[order], np.arange(n_raters + 1))
    keys = [said[start:end].tobytes() for start, end in pairwise(ends.tolist())]
    new = np.empty(n_raters, dtype=np.int64)
    new[sorted(range(n_raters), key=keys.__getitem__)] = np.arange(n_raters)
    return new


def reorder_names(raters: tuple[str, ...], new: IntArray) -> tuple[str, ...]:
    """The names in the order of the new numbers."""
    found = [""] * len(raters)
    for name, number in zip(raters, new.tolist(), strict=True):
        found[number] = name
    return tuple(found)


def persons(rater: IntArray, names: Sequence[str]) -> IntArray:
    """The number of the person behind every row's rater, where `names` are the raters': what somebody said once more
    (`r7#2`), or in another campaign (`r7@12`), is by who gave the first judgement (`r7`), no further rater."""
    if not names:
        return rater
    people, places = resolve_raters(names)
    first = {people[name]: number for number, name in sorted(enumerate(names), key=lambda row: -places[row[1]])}
    return np.array([first[people[name]] for name in names], dtype=np.int64)[rater]


def repeated(rater: IntArray, names: Sequence[str], what: Sequence[IntArray]) -> BoolArray:
    """Which rows repeat a judgement: the same person judged the same thing (numbers in `what`) under an earlier key,
    here (`r7`, then `r7#2`) or in another campaign (`r7`, then `r7@12`)."""
    again = np.zeros(len(rater), dtype=np.bool_)
    people, places = resolve_raters(names)
    if len(set(people.values())) == len(people) or not len(rater):
        return again
    place = np.array([places[name] for name in names], dtype=np.int64)[rater]
    keys = np.stack([*what, persons(rater, names)])
    order = np.lexsort((place, *keys))
    begins = np.ones(len(rater), dtype=np.bool_)
    begins[1:] = (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0)
    first = rater[order][np.flatnonzero(begins)][np.cumsum(begins) - 1]
    again[order] = rater[order] != first
    return again


def without_repeats(n: int) -> list[str]:
    """The sentence that says how many judgements are not counted because a person had judged the same before."""
    if not n:
        return []
    one = "1 judgement repeats one by the same person and is not counted: the first one counts."
    many = "judgements repeat one by the same person and are not counted: the first one counts."
    return [one if n == 1 else f"{n:,} {many}"]


def normalised(ratings: Ratings, method: str) -> FloatArray:
    """The ratings as `method` says (`normalise_ratings`). Whoever repeats is the same person in z-scores; ranks stay
    within one row, which is what somebody rated at one time: a repeat of it is another row."""
    rater = ratings.rater if method == "rank" else persons(ratings.rater, ratings.raters)
    return normalise_ratings(ratings.value, ratings.item, rater, method=method)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ratings:
    """Columns of equal length, one row per rating of an output, by item, system and rater. `output` is whatever
    identifies an output where the rows come from; the others are numbers by sorted label, those of raters by
    `number_raters`; `raters` are the labels of `rater`. `n_filtered` ratings were left out by a filter of raters."""

    output: IntArray
    item: IntArray
    cluster: IntArray
    system: IntArray
    rater: IntArray
    value: FloatArray
    simulated: BoolArray
    units: Units
    raters: tuple[str, ...] = ()
    n_filtered: int = 0

    def __len__(self) -> int:
        return len(self.value)

    @property
    def repeat(self) -> BoolArray:
        """Ratings of an output that the same person had rated before: they count for the person's consistency only."""
        return repeated(self.rater, self.raters, [self.output])

    def only(self, rows: BoolArray) -> Ratings:
        columns = ("output", "item", "cluster", "system", "rater", "value", "simulated")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


@dataclass(frozen=True)
class Comparisons:
    """Columns of equal length, one row per comparison; `system_b` is -1 where side b is a reference. `raters` are the
    labels of `rater`; `n_filtered` comparisons were left out by a filter of raters; `longer` is by how many characters
    the text of side a is longer than that of side b, nothing where b is a reference. `propensity` is the chance with
    which an adaptive campaign took the pair of systems, nan for rows of other origin, nothing where nobody asked.
    `output_a` and `output_b` (-1: a reference) are whatever identifies an output where the rows come from."""

    item: IntArray
    cluster: IntArray
    system_a: IntArray
    system_b: IntArray
    verdict: Any
    simulated: BoolArray
    units: Units
    rater: IntArray
    raters: tuple[str, ...] = ()
    n_filtered: int = 0
    longer: FloatArray | None = None
    propensity: FloatArray | None = None
    output_a: IntArray | None = None
    output_b: IntArray | None = None

    def __len__(self) -> int:
        return len(self.item)

    @property
    def repeat(self) -> BoolArray:
        """Comparisons of what the same person had compared before, whichever side it was on."""
        a, b = (self.system_a, self.system_b) if self.output_a is None else (self.output_a, self.output_b)
        if b is None:
            b = self.system_b
        return repeated(self.rater, self.raters, [self.item, np.minimum(a, b), np.maximum(a, b)])

    def only(self, rows: BoolArray) -> Comparisons:
        columns = ["item", "cluster", "system_a", "system_b", "verdict", "simulated", "rater"]
        optional = ("longer", "propensity", "output_a", "output_b")
        columns += [name for name in optional if getattr(self, name) is not None]
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


#: (output, item, group, system, step, rater, value, simulated).
RatingRow: TypeAlias = tuple[int, str, str, Hashable, int | None, str, float, bool]


def build_ratings(rows: Iterable[RatingRow], units: Units, is_dropped: Callable[[str], bool]) -> Ratings:
    """Columns of ratings by item, system and rater, without those of the raters whom a filter drops.

    Compact columns from the start: a million ratings take 50 MB, their Python objects many times more."""
    items, groups, raters = Labels(), Labels(), Labels()
    columns: list[array[Any]] = [array(code) for code in "qqqqqdb"]
    n_filtered = 0
    for output, item, group, system, step, rater, value, simulated in rows:
        if is_dropped(rater):
            n_filtered += 1
            continue
        unit = units.code(system, step)
        codes = (output, items.code(item), groups.code(group), unit, raters.code(rater), value, simulated)
        for column, code in zip(columns, codes, strict=True):
            column.append(code)
    output_, item_, cluster, unit_, rater_, value_, simulated_ = (np.array(column) for column in columns)
    item_, cluster, unit_ = items.sort()[item_], groups.sort()[cluster], units.sort()[unit_]
    numbers = raters.sort()[rater_]
    new = number_raters(numbers, len(raters.names), (item_, unit_, np.unique(value_, return_inverse=True)[1]))
    numbers = new[numbers]
    order = np.lexsort((numbers, value_, unit_, item_))
    return Ratings(
        output=output_[order], item=item_[order], cluster=cluster[order], system=unit_[order], rater=numbers[order],
        value=value_[order], simulated=simulated_[order].astype(bool), units=units,
        raters=reorder_names(raters.names, new), n_filtered=n_filtered,
    )  # fmt: skip


#: (system, step, output, characters of the text).
Side: TypeAlias = tuple[Hashable, int | None, int, int]
#: (item, group, first side, second side or None for a reference, verdict, simulated, rater, propensity, swapped).
ComparisonRow: TypeAlias = tuple[str, str, Side, Side | None, str, bool, str, float | None, bool]


def build_comparisons(
    rows: Iterable[ComparisonRow],
    units: Units,
    is_dropped: Callable[[str], bool],
    *,
    turing: bool,
    with_propensity: bool = True,
) -> Comparisons:
    """Columns of comparisons of two outputs, or (`turing`) of an output with a reference, without those of the raters
    whom a filter drops. Side a is the one that stood first on the page: rows that were `swapped` are turned."""
    items, groups, raters = Labels(), Labels(), Labels()
    found, n_filtered = [], 0
    for item, group, first, second, verdict, simulated, rater, chance, swapped in rows:
        if is_dropped(rater):
            n_filtered += 1
            continue
        if swapped and second is not None:
            first, second, verdict = second, first, FLIPPED.get(verdict, verdict)
        a = units.code(*first[:2])
        b, output_b, longer = -1, -1, 0
        if second is not None:
            b, output_b, longer = units.code(*second[:2]), second[2], first[3] - second[3]
        where = items.code(item), groups.code(group), a, b, raters.code(rater), first[2], output_b
        found.append((*where, verdict, simulated, longer, np.nan if chance is None else chance))
    *codes, verdicts, flags, by, chances = zip(*found, strict=True) if found else ((),) * 11
    item_, group_, a_, b_, rater_, first_, second_ = (np.array(column, dtype=np.int64) for column in codes)
    # One code more than there are units: -1, which stands for a reference, stays -1.
    new = np.append(units.sort(), -1)
    item_, group_, a_, b_ = items.sort()[item_], groups.sort()[group_], new[a_], new[b_]
    verdict_, said = np.array(verdicts, dtype=np.str_), raters.sort()[rater_]
    what = (item_, a_, b_ + 1, np.unique(verdict_, return_inverse=True)[1])
    numbers = number_raters(said, len(raters.names), what)
    said = numbers[said]
    order = np.lexsort((said, verdict_, b_, a_, item_))
    return Comparisons(
        item=item_[order],
        cluster=group_[order],
        system_a=a_[order],
        system_b=b_[order],
        verdict=verdict_[order],
        simulated=np.array(flags, dtype=np.bool_)[order],
        units=units,
        rater=said[order],
        raters=reorder_names(raters.names, numbers),
        n_filtered=n_filtered,
        longer=None if turing else np.array(by, dtype=np.float64)[order],
        propensity=np.array(chances, dtype=np.float64)[order] if with_propensity else None,
        output_a=first_[order],
        output_b=second_[order],
    )


@dataclass(frozen=True)
class Scores:
    """Columns of equal length, one row per scored output of one set of scores; nan is undefined."""

    item: IntArray
    cluster: IntArray
    system: IntArray
    value: FloatArray
    units: Units

    def __len__(self) -> int:
        return len(self.value)
