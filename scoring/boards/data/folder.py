"""The data of a table of an export, from the files of its folder."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.agreement.judged import RaterJudgements
from evalapp.stats.core.coding import BoolArray, IntArray
from scoring.boards.base import AspectInfo, Progress, Query, Table, Way
from scoring.boards.data.columns import (
    NO_SYSTEM,
    Comparisons,
    Labels,
    Ratings,
    Scores,
    Units,
    build_comparisons,
    build_judged,
    build_ratings,
    describe_compared,
    label_unit,
    part_column,
)
from scoring.boards.data.files import ExportFolder, FolderError, Place, Row, read_object
from scoring.boards.metrics.people import Scored
from scoring.boards.registry import get_board

Entry = Mapping[str, Any]
#: Parameters of an entry for resampling.
DRAWS = ("seed", "resamples")


def compute_entry(folder: ExportFolder, entry: Entry, overrides: Mapping[str, Any]) -> Table:
    """Compute the table of an entry of `leaderboard.json` from the files. `overrides` replace seed and resamples."""
    params = {**entry["params"], **overrides}
    draws = {name: params[name] for name in DRAWS if name in params}
    board = get_board(entry["kind"])
    query = board.query(**{name: params[name] for name in board.query.names() if name in params})
    return board.compute(FolderData(folder, entry, draws), query)


class FolderData:
    """Implements `Data` for an entry of `leaderboard.json`, which names the aspect, score sets, subsets and reference
    sets, with the rows of the folder."""

    def __init__(self, folder: ExportFolder, entry: Entry, draws: Mapping[str, Any]) -> None:
        self.folder, self.entry, self.table = folder, entry, entry["table"]
        # Before 0.2.0, intervals at the system level used resamples of items and systems.
        both = {"bootstrap": "both"} if "|boot:both|" in self.table.get("signature", "") else {}
        self.draws = {**draws, **both}
        #: The number of an output is its position here.
        self.places: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self._dialogues: tuple[str, ...] = ()

    def _number(self, place: Place) -> int:
        number = self._numbers.setdefault(place, len(self.places))
        if number == len(self.places):
            self.places.append(place)
        return number

    def choose_aspect(self, name: str, way: Way, *, campaign: str = "", otherwise: str = "") -> AspectInfo:
        return AspectInfo(self.table["aspect"], *self._scales.get(self.table["aspect"], (None, None)))

    @cached_property
    def _scales(self) -> dict[str, tuple[float | None, float | None]]:
        rows = self.folder.document("dataset.json").get("aspects", [])
        ends = (tuple(None if row[end] is None else float(row[end]) for end in ("min", "max")) for row in rows)
        return {row["name"]: scale for row, scale in zip(rows, ends, strict=True)}  # type: ignore[misc]

    def _list_judged(self, table: str, aspect: AspectInfo) -> Iterator[Row]:
        self.folder.must_have(table)
        return (row for row in self.folder.rows(table) if row.get("aspect") == aspect.name)

    def load_ratings(self, aspect: AspectInfo, query: Query) -> Ratings:
        rows = (
            (
                self._number(_place(row)), row["item"], self.folder.group(row["item"]), row["system"], row.get("step"),
                *_rating(row),
            )
            for row in self._list_judged("ratings", aspect)
            if row.get("item")
        )  # fmt: skip
        with_chance = bool(getattr(query, "assist", ""))
        return build_ratings(
            rows, self.folder.units(), self.folder.left_out(query.rater_filter), with_chance=with_chance
        )

    def load_dialogues(self, aspect: AspectInfo, query: Query) -> Ratings:
        numbers: dict[str, int] = {}
        systems = self.folder.dialogue_systems
        named = (
            (row["dialogue"], row) for row in self._list_judged("ratings", aspect) if row.get("dialogue")
        )  # fmt: skip
        rows = (
            (numbers.setdefault(key, len(numbers)), key, key, systems.get(key) or NO_SYSTEM, None, *_rating(row))
            for key, row in named
        )
        ratings = build_ratings(rows, self.folder.units(), self.folder.left_out(query.rater_filter))
        self._dialogues = tuple(numbers)
        return ratings

    def load_turns(self, dialogues: IntArray) -> tuple[IntArray, IntArray]:
        """A turn is an output of an item whose group is the dialogue, by the dialogue's system, if it has one."""
        positions = {self._dialogues[number]: position for position, number in enumerate(dialogues.tolist())}
        systems, turns = self.folder.dialogue_systems, []
        for row in self.folder.rows("outputs"):
            group = self.folder.group(row["item"])
            if group in positions and systems.get(group) in (None, "", row["system"]):
                turns.append((self._number(_place(row)), positions[group]))
        pairs = np.array(turns, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def load_comparisons(self, aspect: AspectInfo, query: Query, *, turing: bool) -> Comparisons:
        def side(row: Row, letter: str) -> tuple[str, int | None, int, int]:
            place = _place(row, f"_{letter}")
            return place[1], place[2], self._number(place), 0 if turing else self.folder.lengths[place]

        # Without comparisons, the table is empty and the export has no such file.
        if self.table.get("n_ratings") != 0:
            self.folder.must_have("comparisons")
        compared = (row for row in self.folder.rows("comparisons") if row.get("aspect") == aspect.name)
        meant = ((row, read_object(row.get("meta"))) for row in compared if isinstance(row["system_b"], dict) == turing)
        rows = (
            (
                row["item"], self.folder.group(row["item"]), side(row, "a"), None if turing else side(row, "b"),
                row["verdict"], bool(row.get("simulated")), row["rater"], meta.get("propensity", np.nan),
                bool(meta.get("swapped")),
            )
            for row, meta in meant
        )  # fmt: skip
        is_dropped = self.folder.left_out(query.rater_filter)
        return build_comparisons(rows, self.folder.units(), is_dropped, turing=turing)

    def list_ways(self, query: Any) -> Sequence[tuple[AspectInfo, str]]:
        rows = [self.table] if query.aspect else self.table["rows"]
        return [(AspectInfo(row["aspect"]), row["judged"]) for row in rows]

    def describe_judged(self, aspect: AspectInfo | None = None, way: str = "") -> Table:
        return {}

    def load_judged(self, aspect: AspectInfo, way: str, query: Query) -> RaterJudgements:
        """Exports do not contain campaigns and times."""
        is_numeric = way in ("ratings", "dialogues")
        rows = self._list_judged("ratings" if is_numeric else "comparisons", aspect)
        judged = (
            (*_judged_unit(row, way), row["rater"], bool(row.get("simulated"))) for row in rows if _get_way(row) == way
        )
        return build_judged(judged, self.folder.left_out(query.rater_filter), numeric=is_numeric)

    def load_controls(self, query: Query) -> Mapping[str, tuple[int, int]]:
        return {}

    def load_outputs(self, subset: str) -> tuple[IntArray, IntArray, IntArray]:
        places = [_place(row) for row in self.folder.rows("outputs")]
        units, _item, cluster, system, order = self._sort_outputs(places)
        order = order[units.wanted(subset)[system[order]]] if len(order) else order
        numbers = [self._number(places[k]) for k in order.tolist()]
        return np.array(numbers, dtype=np.int64), cluster[order], system[order]

    def _sort_outputs(self, places: Sequence[Place]) -> tuple[Units, IntArray, IntArray, IntArray, IntArray]:
        """Return the units, columns of codes of item, group and unit, and the order by item and unit."""
        units, items, groups = self.folder.units(), Labels(), Labels()
        codes = [
            (items.code(item), groups.code(self.folder.group(item)), units.code(system, step))
            for item, system, step in places
        ]
        columns = np.array(codes, dtype=np.int64).reshape(-1, 3)
        item_, cluster, unit = items.sort()[columns[:, 0]], groups.sort()[columns[:, 1]], units.sort()[columns[:, 2]]
        return units, item_, cluster, unit, np.lexsort((unit, item_))

    def choose_key(self, key: str) -> str:
        return str(self.table["key"])

    def load_parts(self, outputs: IntArray, key: str) -> NDArray[Any]:
        return part_column(self.folder.metas[self.places[number][0]].get(key) for number in outputs.tolist())

    def score_sets(self, query: Query, aspect: str | None, *, one_each: bool = False) -> list[Any]:
        return list(self.entry["sets"])

    def score_sets_by_references(self, query: Query, aspect: str) -> tuple[list[str], list[dict[str, Any]]]:
        by_evaluator: dict[tuple[str, str], dict[str, Any]] = {}
        for name in self.entry["sets"]:
            row = self.folder.get_score_set(name)
            by_evaluator.setdefault((row["evaluator"], row["aspect"]), {})[row["references"]] = name
        return list(self.entry["references"]), [sets for _, sets in sorted(by_evaluator.items())]

    def describe_references(self, names: Sequence[str]) -> Table:
        return {}

    def load_scored(self, score_set: str, outputs: IntArray) -> Scored:
        row = self.folder.get_score_set(score_set)
        values = {place: value for place, value, _ in self.folder.list_scores(score_set)}
        members = ("evaluator", "name", "kind", "signature", "aspect", "references", "short_signature", "scored_at")
        return Scored(
            metric=np.array([values.get(self.places[number], np.nan) for number in outputs.tolist()], dtype=np.float64),
            own=tuple(row.get("systems") or ()),
            score_set=score_set,
            n_in_training=int(row["n_in_training"]),
            **{key: row[key] for key in members},
        )

    def find_learned(self, score_sets: Sequence[str], outputs: IntArray) -> BoolArray:
        scores = (row for name in score_sets for row in self.folder.list_scores(name))
        learned = {place for place, _, is_learned in scores if is_learned}
        return np.array([self.places[number] in learned for number in outputs.tolist()], dtype=bool)

    def load_system_scores(self, query: Any) -> tuple[Table, Scores, Any]:
        (name,) = self.entry["sets"]
        rows, own = self.folder.list_scores(name), self.folder.get_score_set(name).get("systems") or ()
        if own and not rows:  # scores of whole systems only
            rows = [(_place(row), np.nan, False) for row in self.folder.rows("outputs")]
        units, item, cluster, system, order = self._sort_outputs([place for place, _, _ in rows])
        value = np.array([score for _, score, _ in rows], dtype=np.float64)
        output = np.array([self._number(rows[k][0]) for k in order.tolist()], dtype=np.int64)
        if query.assist and any(is_learned for _, _, is_learned in rows):
            raise FolderError("scores", f"scores of {name} are of items in its training data: they cannot assist")
        scores = Scores(item[order], cluster[order], system[order], value[order], units, output)
        return self.table["evaluator"], scores, own

    def list_unapplied(self, query: Query) -> dict[str, str]:
        return {row["evaluator"]: row["note"] for row in self.table["rows"] if row["score_set"] is None}

    def compute_by_aspect(self, query: Any, progress: Progress | None) -> list[Table]:
        unapplied = [
            {"evaluator": row["evaluator"], "note": row["cells"][0]["note"], "score_set": None}
            for row in self.table["rows"]
            if row["score_set"] is None
        ]
        signatures = {one["aspect"]: one.get("signature", "") for one in self.table["aspects"]}
        entries = [
            {
                **part,
                "kind": query.for_aspect(aspect).kind,
                "table": {"aspect": aspect, "rows": unapplied, "signature": signatures.get(aspect, "")},
            }
            for aspect, part in self.entry["tables"].items()
        ]
        draws = {name: value for name, value in self.draws.items() if name in DRAWS}
        return [compute_entry(self.folder, entry, draws) for entry in entries]


def _place(row: Row, side: str = "") -> Place:
    return row["item"], row[f"system{side}"], row.get(f"step{side}")


def _rating(row: Row) -> tuple[str, float, bool, float | None]:
    chance = read_object(row["meta"]).get("propensity") if row.get("meta") else None
    return row["rater"], float(row["value"]), bool(row.get("simulated")), chance


def _get_way(row: Row) -> str:
    if "verdict" in row:
        return "turing" if isinstance(row["system_b"], dict) else "comparisons"
    return "dialogues" if row.get("dialogue") else "ratings"


def _judged_unit(row: Row, way: str) -> tuple[Any, str, str, str]:
    """Return value, unit, item and system like `project_judgements`."""
    if way == "dialogues":
        return float(row["value"]), row["dialogue"], row["dialogue"], ""
    if way == "ratings":
        system = label_unit(row["system"], row.get("step"))
        return float(row["value"]), f"{row['item']}\t{system}", row["item"], system
    a = label_unit(row["system_a"], row.get("step_a"))
    if way == "turing":
        return row["verdict"], f"{row['item']}\t{a}\t{row['system_b']['reference']}", row["item"], a
    return describe_compared(row["item"], a, label_unit(row["system_b"], row.get("step_b")), row["verdict"])
