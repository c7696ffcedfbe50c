"""Statistics of an export, counted while its rows are written, so that exports with equal rows have equal
statistics."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from annotation.parsers.kinds import VERDICTS
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import Bootstrap

if TYPE_CHECKING:
    from evalapp.stats.agreement.krippendorff import Scale

Row = dict[str, Any]
RESAMPLES = 200
NOT_RECORDED = "not recorded"


class CampaignFacts(dict[str, Any]):
    """The description of a campaign; imported ones may lack some members."""

    def __missing__(self, name: str) -> str:
        return NOT_RECORDED


@dataclass
class AspectFacts:
    """Judgements of an aspect, all `ratings`, `dialogues`, `comparisons` or `turing`. Units are what was judged; values
    are numbers, or numbers for verdicts as seen from the first system."""

    n: int = 0
    n_units: int = 0
    #: Unit -> (rater, value) of the current item or dialogue, whose rows come together.
    units: dict[Any, list[tuple[int, float]]] = field(default_factory=dict)
    subject: str = ""
    raters: dict[str, int] = field(default_factory=dict)
    #: The judgements of former units with several, which are all that agreement needs.
    unit: array[int] = field(default_factory=lambda: array("q"))
    rater: array[int] = field(default_factory=lambda: array("q"))
    value: array[float] = field(default_factory=lambda: array("d"))
    simulated: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)

    def add(self, unit: Any, row: Row, value: float) -> None:
        subject = row["dialogue"] if "dialogue" in row else row["item"]
        if subject != self.subject:
            self._finish_units()
            self.subject = subject
        if unit not in self.units:
            self.units[unit] = []
            self.n_units += 1
        self.units[unit].append((self.raters.setdefault(row["rater"], len(self.raters)), value))
        self.n += 1
        self.simulated += bool(row.get("simulated"))

    def _finish_units(self) -> None:
        for number, judgements in enumerate(self.units.values(), self.n_units - len(self.units)):
            for rater, value in judgements if len(judgements) > 1 else ():
                self.unit.append(number)
                self.rater.append(rater)
                self.value.append(value)
        self.units.clear()

    @property
    def n_raters(self) -> int:
        return count_persons(self.raters)

    def agreement(self, scale: Scale) -> Estimate:
        """Krippendorff's alpha with its interval, without repeats: a rater is not a second rater of the same unit."""
        import numpy as np

        from evalapp.stats.agreement.judged import resolve_raters
        from evalapp.stats.agreement.krippendorff import krippendorff_alpha

        self._finish_units()
        people, places = resolve_raters(self.raters)
        numbers = {person: number for number, person in enumerate(sorted(set(people.values())))}
        rater, unit = np.array(self.rater, dtype=np.int64), np.array(self.unit, dtype=np.int64)
        person = np.array([numbers[people[name]] for name in self.raters], dtype=np.int64)[rater]
        order = np.lexsort((np.array([places[name] for name in self.raters], dtype=np.int64)[rater], person, unit))
        again = (np.diff(unit[order]) == 0) & (np.diff(person[order]) == 0)
        first = np.sort(order[np.append(True, ~again)[: len(order)]])
        return krippendorff_alpha(
            unit[first], np.array(self.value)[first], scale=scale, bootstrap=Bootstrap(resamples=RESAMPLES)
        )


def count_persons(raters: Collection[str]) -> int:
    """The number of people behind rater ids: `r7#2` is a repeat by `r7`, `r7@12` is `r7` in another campaign."""
    from evalapp.stats.agreement.judged import resolve_raters

    return len(set(resolve_raters(raters)[0].values()))


_TURNED = {"a": "b", "b": "a"}


class Facts:
    """Counts every row of an export."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.judged: dict[tuple[str, str], AspectFacts] = {}
        self.raters: set[str] = set()
        self.systems: Counter[str] = Counter()
        self.kinds: dict[str, str] = {}
        self.campaigns: list[Row] = []
        self.filters: list[Row] = []
        self.score_sets: list[Row] = []
        #: Hashes of the groups of the items, which take less memory than their names.
        self.group_keys = array("q")
        self.shapes: dict[str, _Shape] = {}

    def take(self, table: str, row: Row) -> None:
        self.counts[table] += 1
        self.shapes.setdefault(table, _Shape()).take(row)
        taker = getattr(self, f"_{table}", None)
        if taker is not None:
            taker(row)

    def _items(self, row: Row) -> None:
        self.group_keys.append(hash(row["group"]))

    def _outputs(self, row: Row) -> None:
        self.systems[row["system"]] += 1

    def _systems(self, row: Row) -> None:
        self.kinds[row["id"]] = row["kind"]

    def _ratings(self, row: Row) -> None:
        way = "dialogues" if "dialogue" in row else "ratings"
        unit = row["dialogue"] if way == "dialogues" else (row["item"], row["system"], row.get("step"))
        self.raters.add(row["rater"])
        self._get_aspect(row["aspect"], way).add(unit, row, float(row["value"]))

    def _comparisons(self, row: Row) -> None:
        self.raters.add(row["rater"])
        verdict = row["verdict"]
        a = (row["system_a"], row.get("step_a"))
        if isinstance(row["system_b"], dict):
            unit, way = (row["item"], a, row["system_b"]["reference"]), "turing"
        else:
            b, way = (row["system_b"], row.get("step_b")), "comparisons"
            if str(b) < str(a):
                a, b, verdict = b, a, _TURNED.get(verdict, verdict)
            unit = (row["item"], a, b)
        judged = self._get_aspect(row["aspect"], way)
        judged.add(unit, row, float(VERDICTS.index(verdict)))
        judged.verdicts[row["verdict"]] += 1

    def _campaigns(self, row: Row) -> None:
        self.campaigns.append({**row, "told": CampaignFacts(row["told"])})

    def _filters(self, row: Row) -> None:
        self.filters.append(row)

    def _score_sets(self, row: Row) -> None:
        self.score_sets.append(row)

    def _get_aspect(self, aspect: str, way: str) -> AspectFacts:
        return self.judged.setdefault((aspect, way), AspectFacts())

    @property
    def n_groups(self) -> int:
        import numpy as np

        return len(np.unique(np.array(self.group_keys)))

    @property
    def n_raters(self) -> int:
        return count_persons(self.raters)

    @property
    def n_judgements(self) -> int:
        return sum(judged.n for judged in self.judged.values())

    @property
    def n_simulated(self) -> int:
        return sum(judged.simulated for judged in self.judged.values())

    def mixed_column(self, table: str) -> str:
        """The first column of a table with values of multiple types, which typed JSON readers reject."""
        shape = self.shapes.get(table)
        return shape.mixed if shape else ""


class _Shape:
    """The type of value at each place in the rows of a table."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, ...], str] = {}
        self.mixed = ""

    def take(self, row: Row) -> None:
        if not self.mixed:
            self._walk((), row)

    def _walk(self, place: tuple[str, ...], value: Any) -> None:
        if value is None:
            return
        kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
        if self.kinds.setdefault(place, kind) != kind:
            self.mixed = ".".join(place)
        elif isinstance(value, dict):
            for name, part in value.items():
                self._walk((*place, name), part)
        elif isinstance(value, list):
            for part in value:
                self._walk((*place, "[]"), part)
