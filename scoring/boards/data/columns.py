"""Judgements and scores as columns from which tables are computed. Codes follow the sorted labels, so that resamples
and sums are equal for rows from a database and from the files of an export."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.agreement.judged import (
    FLIPPED,
    JudgementColumns,
    RaterJudgements,
    collect_judgements,
    explain_missing,
    resolve_raters,
)
from evalapp.stats.agreement.normalise import normalise_ratings
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray

#: The system of a dialogue that names none.
NO_SYSTEM = "(no system)"

#: Kinds of systems that a subset excludes.
LEFT_OUT: dict[str, frozenset[str]] = {
    "all": frozenset(),
    "machine": frozenset({"human", "reference", "control"}),
    "no-reference": frozenset({"reference"}),
}


@dataclass(frozen=True)
class Unit:
    """A system, at a training step if it has checkpoints: the unit that a leaderboard ranks."""

    name: str
    step: int | None
    kind: str

    @property
    def label(self) -> str:
        return label_unit(self.name, self.step)


def label_unit(name: str, step: int | None) -> str:
    """Return the label of a system at a training step."""
    return name if step is None else f"{name} @ {step}"


@dataclass
class Units:
    """Assigns codes to systems at steps in the order of the rows; `units[code]` is the unit. `systems` maps identifiers
    of systems in the rows to name and kind."""

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
        """Sort the units by name and step (none before 0); return the new code of every old one."""
        units = self.units
        order = sorted(range(len(units)), key=lambda k: (units[k].name, units[k].step is not None, units[k].step or 0))
        self.units = [units[k] for k in order]
        new = np.empty(len(order), dtype=np.int64)
        new[order] = np.arange(len(order))
        self.codes = {key: int(new[code]) for key, code in self.codes.items()}
        return new

    def wanted(self, subset: str) -> BoolArray:
        return np.array([unit.kind not in LEFT_OUT[subset] for unit in self.units], dtype=bool)


#: The subset of items without a value.
MISSING = "(not said)"
#: Longer names are stored as objects.
WIDE = 100


def part_column(values: Iterable[Any]) -> NDArray[Any]:
    """Return subsets as texts, `MISSING` for none. Long texts are stored as objects to save memory."""
    names = [MISSING if value is None else str(value) for value in values]
    wide = max(map(len, names), default=0) > WIDE
    return np.array(names, dtype=np.object_ if wide else np.str_)


class Labels:
    """Assigns codes to labels in the order of the rows. They are sorted at the end, so that resamples and ties do not
    depend on that order."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, label: str) -> int:
        return self.codes.setdefault(label, len(self.codes))

    @property
    def names(self) -> tuple[str, ...]:
        """The sorted labels."""
        return tuple(sorted(self.codes))

    def sort(self) -> IntArray:
        """Return the new code of every old one."""
        new = np.empty(len(self.codes), dtype=np.int64)
        new[[self.codes[label] for label in self.names]] = np.arange(len(self.codes))
        return new


def number_raters(rater: IntArray, n_raters: int, what: Sequence[IntArray]) -> IntArray:
    """Return the new code of every rater, sorted by their judgements: exports may rename raters, and resamples of
    raters must stay the same. `what`: columns of codes that describe the judgement of each row."""
    order = np.lexsort((*reversed(what), rater))
    judged = np.stack([column[order] for column in what], axis=1).astype(">i8")
    ends = np.searchsorted(rater[order], np.arange(n_raters + 1))
    keys = [judged[start:end].tobytes() for start, end in pairwise(ends.tolist())]
    new = np.empty(n_raters, dtype=np.int64)
    new[sorted(range(n_raters), key=keys.__getitem__)] = np.arange(n_raters)
    return new


def reorder_names(raters: tuple[str, ...], new: IntArray) -> tuple[str, ...]:
    """Return the names in the order of the new codes."""
    result = [""] * len(raters)
    for name, number in zip(raters, new.tolist(), strict=True):
        result[number] = name
    return tuple(result)


def persons(rater: IntArray, names: Sequence[str]) -> IntArray:
    """Return the code of the person behind each row's rater. Repeats (`r7#2`) and judgements in another campaign
    (`r7@12`) belong to the same person (`r7`). `names` are the labels of the raters."""
    if not names:
        return rater
    people, places = resolve_raters(names)
    first = {people[name]: number for number, name in sorted(enumerate(names), key=lambda row: -places[row[1]])}
    return np.array([first[people[name]] for name in names], dtype=np.int64)[rater]


def repeated(rater: IntArray, names: Sequence[str], what: Sequence[IntArray]) -> BoolArray:
    """Return which rows repeat a judgement: the same person judged the same thing (codes in `what`) under an earlier
    rater key (`r7`, then `r7#2` or `r7@12`)."""
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
    """Return a sentence on the number of repeated judgements, if any."""
    if not n:
        return []
    one = "1 judgement repeats an earlier one by the same person and is not counted."
    return [one if n == 1 else f"{n:,} judgements repeat earlier ones by the same person and are not counted."]


def normalised(ratings: Ratings, method: str) -> FloatArray:
    """Return the ratings normalised by `method` (`normalise_ratings`). For z-scores, repeats belong to the same person;
    ranks are within a row of ratings, and a repeat is another row."""
    rater = ratings.rater if method == "rank" else persons(ratings.rater, ratings.raters)
    return normalise_ratings(ratings.value, ratings.item, rater, method=method)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ratings:
    """Columns of equal length, one row per rating of an output, sorted by item, system and rater.

    `output` identifies an output in the source; other columns are codes by sorted label, `rater` by `number_raters`.
    `raters` are the labels of `rater`; `n_filtered` ratings were dropped by a filter of raters. `chance` is the
    probability with which a campaign chose the output, nan for other rows, None if it was not requested: then
    `n_chosen` ratings of such outputs were left out.
    """

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
    chance: FloatArray | None = None
    n_chosen: int = 0

    def __len__(self) -> int:
        return len(self.value)

    @property
    def repeat(self) -> BoolArray:
        """Repeated ratings of an output by the same person, which count only for self-consistency."""
        return repeated(self.rater, self.raters, [self.output])

    def only(self, rows: BoolArray) -> Ratings:
        columns = ["output", "item", "cluster", "system", "rater", "value", "simulated"]
        columns += ["chance"] if self.chance is not None else []
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


def select_ratings(ratings: Ratings, method: str, subset: str) -> tuple[Ratings, FloatArray, list[str]]:
    """Return the ratings of a subset of systems by persons without repeats, their values normalised by `method` (nan:
    none), and sentences on what does not count."""
    wanted, repeat = ratings.units.wanted(subset), ratings.repeat
    n_repeats = int(wanted[ratings.system[repeat]].sum())
    ratings = ratings.only(~repeat)
    # Normalised over all ratings, so that values are the same in every subset of systems.
    value = normalised(ratings, method)
    ratings = replace(ratings, rater=persons(ratings.rater, ratings.raters))
    rows = wanted[ratings.system] if len(ratings) else np.zeros(0, dtype=bool)
    n_undefined = int((~np.isfinite(value[rows])).sum())
    counted = [*without_repeats(n_repeats), *explain_chosen(ratings.n_chosen), *explain_missing(n_undefined, method)]
    return ratings.only(rows), value[rows], counted


def explain_chosen(n: int) -> list[str]:
    """Return a sentence on ratings that are left out, because their outputs were chosen by the evaluator's error."""
    if not n:
        return []
    one = "1 rating of an output that was chosen by its expected error is not counted."
    return [one if n == 1 else f"{n:,} ratings of outputs that were chosen by their expected error are not counted."]


@dataclass(frozen=True)
class Comparisons:
    """Columns of equal length, one row per comparison; `system_b` is -1 if side b is a reference.

    `raters` are the labels of `rater`; `n_filtered` comparisons were dropped by a filter of raters. `longer` is the
    number of characters by which side a is longer, None for references. `propensity` is the probability with which an
    adaptive campaign chose the pair, nan for other rows, None if it was not requested. `output_a` and `output_b`
    (-1: a reference) identify outputs in the source.
    """

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
        """Repeated comparisons of the same outputs by the same person, on either side."""
        a, b = (self.system_a, self.system_b) if self.output_a is None else (self.output_a, self.output_b)
        if b is None:
            b = self.system_b
        return repeated(self.rater, self.raters, [self.item, np.minimum(a, b), np.maximum(a, b)])

    def only(self, rows: BoolArray) -> Comparisons:
        columns = ["item", "cluster", "system_a", "system_b", "verdict", "simulated", "rater"]
        optional = ("longer", "propensity", "output_a", "output_b")
        columns += [name for name in optional if getattr(self, name) is not None]
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


#: (output, item, group, system, step, rater, value, simulated, chance of the output or None).
RatingRow: TypeAlias = tuple[int, str, str, Hashable, int | None, str, float, bool, float | None]


def build_ratings(
    rows: Iterable[RatingRow], units: Units, is_dropped: Callable[[str], bool], *, with_chance: bool = False
) -> Ratings:
    """Build columns of ratings without those of dropped raters. A million ratings take 50 MB; Python objects would take
    many times more.

    Ratings of outputs that a campaign chose are left out, unless `with_chance`; outputs that were selected for a reason
    (chance 0) always are."""
    items, groups, raters = Labels(), Labels(), Labels()
    columns: list[array[Any]] = [array(code) for code in "qqqqqdbd"]
    n_filtered = n_chosen = 0
    for output, item, group, system, step, rater, value, simulated, chance in rows:
        if is_dropped(rater):
            n_filtered += 1
            continue
        if chance is not None and not (with_chance and chance > 0):
            n_chosen += 1
            continue
        unit = units.code(system, step)
        likely = np.nan if chance is None else chance
        codes = (output, items.code(item), groups.code(group), unit, raters.code(rater), value, simulated, likely)
        for column, code in zip(columns, codes, strict=True):
            column.append(code)
    output_, item_, cluster, unit_, rater_, value_, simulated_, chance_ = (np.array(column) for column in columns)
    item_, cluster, unit_ = items.sort()[item_], groups.sort()[cluster], units.sort()[unit_]
    numbers = raters.sort()[rater_]
    new = number_raters(numbers, len(raters.names), (item_, unit_, np.unique(value_, return_inverse=True)[1]))
    numbers = new[numbers]
    order = np.lexsort((numbers, value_, unit_, item_))
    return Ratings(
        output=output_[order], item=item_[order], cluster=cluster[order], system=unit_[order], rater=numbers[order],
        value=value_[order], simulated=simulated_[order].astype(bool), units=units,
        raters=reorder_names(raters.names, new), n_filtered=n_filtered,
        chance=chance_[order] if with_chance else None, n_chosen=n_chosen,
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
    """Build columns of comparisons of two outputs, or (`turing`) of an output with a reference, without those of
    dropped raters. Side a was shown first: rows that were `swapped` are reversed."""
    items, groups, raters = Labels(), Labels(), Labels()
    kept, n_filtered = [], 0
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
        kept.append((*where, verdict, simulated, longer, np.nan if chance is None else chance))
    *codes, verdicts, flags, by, chances = zip(*kept, strict=True) if kept else ((),) * 11
    item_, group_, a_, b_, rater_, first_, second_ = (np.array(column, dtype=np.int64) for column in codes)
    # The additional code keeps -1, a reference, at -1.
    new = np.append(units.sort(), -1)
    item_, group_, a_, b_ = items.sort()[item_], groups.sort()[group_], new[a_], new[b_]
    verdict_, by_rater = np.array(verdicts, dtype=np.str_), raters.sort()[rater_]
    what = (item_, a_, b_ + 1, np.unique(verdict_, return_inverse=True)[1])
    numbers = number_raters(by_rater, len(raters.names), what)
    by_rater = numbers[by_rater]
    order = np.lexsort((by_rater, verdict_, b_, a_, item_))
    return Comparisons(
        item=item_[order],
        cluster=group_[order],
        system_a=a_[order],
        system_b=b_[order],
        verdict=verdict_[order],
        simulated=np.array(flags, dtype=np.bool_)[order],
        units=units,
        rater=by_rater[order],
        raters=reorder_names(raters.names, numbers),
        n_filtered=n_filtered,
        longer=None if turing else np.array(by, dtype=np.float64)[order],
        propensity=np.array(chances, dtype=np.float64)[order] if with_propensity else None,
        output_a=first_[order],
        output_b=second_[order],
    )


#: (value, unit, item, system or "", rater, simulated), of judgements in campaigns also (campaign, seconds, time).
JudgedRow: TypeAlias = tuple[Any, ...]


def describe_compared(item: str, a: str, b: str, verdict: str) -> tuple[str, str, str, str]:
    """Return the first four cells of a `JudgedRow` of two outputs by their labels, which are put in order."""
    if b < a:
        a, b, verdict = b, a, FLIPPED.get(verdict, verdict)
    return verdict, f"{item}\t{a}\t{b}", item, ""


def build_judged(rows: Iterable[JudgedRow], is_dropped: Callable[[str], bool], *, numeric: bool) -> RaterJudgements:
    """Build columns of judgements for tables of agreement without those of dropped raters."""
    columns: list[list[Any]] = []
    n_filtered = 0
    for row in rows:
        if is_dropped(row[4]):
            n_filtered += 1
            continue
        columns = columns or [[] for _ in row]
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
    judged = JudgementColumns(*(columns or ([] for _ in range(6))))
    return collect_judgements(judged, numeric=numeric, n_filtered=n_filtered)


@dataclass(frozen=True)
class Scores:
    """Columns of equal length, one row per scored output of a score set; undefined scores are nan."""

    item: IntArray
    cluster: IntArray
    system: IntArray
    value: FloatArray
    units: Units
    #: Identifies outputs in the source, as in `Ratings`.
    output: IntArray | None = None

    def __len__(self) -> int:
        return len(self.value)
