"""What people said, as columns for the statistics: ratings of one aspect, comparisons, Turing judgements."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from annotation.models import Aspect, Comparison, Rating, System
from evalapp.accounts.models import Project

if TYPE_CHECKING:
    from numpy.typing import NDArray

Subset = Literal["all", "machine", "no-reference"]
SUBSETS: tuple[Subset, ...] = ("all", "machine", "no-reference")
CHUNK = 20_000

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
    """Numbers systems at steps as they turn up in rows; `units[code]` is the unit."""

    systems: dict[int, tuple[str, str]]
    units: list[Unit] = field(default_factory=list)
    codes: dict[tuple[int, int | None], int] = field(default_factory=dict)

    def code(self, system: int, step: int | None) -> int:
        key = (system, step)
        if key not in self.codes:
            name, kind = self.systems[system]
            self.codes[key] = len(self.units)
            self.units.append(Unit(name, step, kind))
        return self.codes[key]

    def sort(self) -> NDArray[np.int64]:
        """Number the units by name and step; returns the new code of every old one."""
        order = sorted(range(len(self.units)), key=lambda k: (self.units[k].name, self.units[k].step or 0))
        self.units = [self.units[k] for k in order]
        new = np.empty(len(order), dtype=np.int64)
        new[order] = np.arange(len(order))
        self.codes = {key: int(new[code]) for key, code in self.codes.items()}
        return new

    def wanted(self, subset: str) -> NDArray[np.bool_]:
        return np.array([unit.kind not in LEFT_OUT[subset] for unit in self.units], dtype=bool)


class Labels:
    """Numbers labels as they turn up. Sorted at the end, so that draws and ties do not depend on the order in which
    the database returns rows."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, label: str) -> int:
        return self.codes.setdefault(label, len(self.codes))

    def sort(self) -> NDArray[np.int64]:
        """The new code of every old one."""
        new = np.empty(len(self.codes), dtype=np.int64)
        new[[self.codes[label] for label in sorted(self.codes)]] = np.arange(len(self.codes))
        return new


@dataclass(frozen=True)
class Ratings:
    """Columns of equal length, one row per rating of an output."""

    output: NDArray[np.int64]
    item: NDArray[np.int64]
    cluster: NDArray[np.int64]
    system: NDArray[np.int64]
    rater: NDArray[np.int64]
    value: NDArray[np.float64]
    simulated: NDArray[np.bool_]
    units: Units

    def __len__(self) -> int:
        return len(self.value)

    def only(self, rows: NDArray[np.bool_]) -> Ratings:
        columns = ("output", "item", "cluster", "system", "rater", "value", "simulated")
        return Ratings(**{name: getattr(self, name)[rows] for name in columns}, units=self.units)


@dataclass(frozen=True)
class Comparisons:
    """Columns of equal length, one row per comparison; `system_b` is -1 where side b is a reference."""

    item: NDArray[np.int64]
    cluster: NDArray[np.int64]
    system_a: NDArray[np.int64]
    system_b: NDArray[np.int64]
    verdict: NDArray[np.str_]
    simulated: NDArray[np.bool_]
    units: Units


def get_units(project: Project) -> Units:
    rows = System.objects.filter(project=project).values_list("pk", "name", "kind")
    return Units({pk: (name, kind) for pk, name, kind in rows})


def load_ratings(project: Project, aspect: Aspect) -> Ratings:
    """All ratings of outputs for one aspect. Ratings of whole dialogues belong to no output and are left out."""
    units, groups, raters = get_units(project), Labels(), Labels()
    rows = Rating.objects.filter(aspect=aspect, output__isnull=False).values_list(
        "output_id",
        "output__item_id",
        "output__item__group",
        "output__system_id",
        "output__step",
        "rater",
        "value",
        "simulated",
    )
    # Compact columns from the start: a million ratings take 50 MB, not the many times more of their Python objects.
    columns = [array("q"), array("q"), array("q"), array("q"), array("q"), array("d"), array("b")]
    for output, item, group, system, step, rater, value, simulated in rows.iterator(chunk_size=CHUNK):
        codes = (output, item, groups.code(group), units.code(system, step), raters.code(rater), value, simulated)
        for column, code in zip(columns, codes, strict=True):
            column.append(code)
    output, item, cluster, system, rater, value, simulated = (np.array(column) for column in columns)
    cluster, system, rater = groups.sort()[cluster], units.sort()[system], raters.sort()[rater]
    order = np.lexsort((rater, output))
    sorted_columns: list[Any] = [column[order] for column in (output, item, cluster, system, rater, value)]
    return Ratings(*sorted_columns, simulated=simulated[order].astype(bool), units=units)


def load_comparisons(project: Project, aspect: Aspect, *, turing: bool) -> Comparisons:
    """Comparisons of two outputs, or (`turing`) of an output with a reference, for one aspect."""
    units, groups = get_units(project), Labels()
    rows = (
        Comparison.objects.filter(aspect=aspect, output_b__isnull=turing)
        .order_by("pk")
        .values_list(
            "output_a__item_id",
            "output_a__item__group",
            "output_a__system_id",
            "output_a__step",
            "output_b__system_id",
            "output_b__step",
            "verdict",
            "simulated",
        )
    )
    found = [
        (
            item,
            groups.code(group),
            units.code(system_a, step_a),
            -1 if system_b is None else units.code(system_b, step_b),
            verdict,
            simulated,
        )
        for item, group, system_a, step_a, system_b, step_b, verdict, simulated in rows.iterator(chunk_size=CHUNK)
    ]
    item, group, system_a, system_b, verdict, simulated = zip(*found, strict=True) if found else ((),) * 6
    # One code more than there are units: -1, which stands for a reference, stays -1.
    new = np.append(units.sort(), -1)
    return Comparisons(
        np.array(item, dtype=np.int64),
        groups.sort()[np.array(group, dtype=np.int64)],
        new[np.array(system_a, dtype=np.int64)],
        new[np.array(system_b, dtype=np.int64)],
        np.array(verdict, dtype=np.str_),
        np.array(simulated, dtype=np.bool_),
        units,
    )
