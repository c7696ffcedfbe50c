"""The data of a table of an export, from the files of its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.agreement.judged import RaterJudgements
from evalapp.stats.core.coding import BoolArray, IntArray
from scoring.boards.base import AspectInfo, Progress, Query, Table, Way
from scoring.boards.data.columns import Comparisons, Ratings, Scores, part_column
from scoring.boards.data.files import ExportFolder, Place
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

    def load_ratings(self, aspect: AspectInfo, query: Query) -> Ratings:
        return self.folder.ratings(aspect.name, self._number, filter=query.rater_filter)

    def load_dialogues(self, aspect: AspectInfo, query: Query) -> Ratings:
        numbers: dict[str, int] = {}
        result = self.folder.dialogues(
            aspect.name, lambda key: numbers.setdefault(key, len(numbers)), filter=query.rater_filter
        )
        self._dialogues = tuple(numbers)
        return result

    def load_turns(self, dialogues: IntArray) -> tuple[IntArray, IntArray]:
        places, of = self.folder.turns([self._dialogues[number] for number in dialogues.tolist()])
        return np.array([*map(self._number, places)], dtype=np.int64), np.array(of, dtype=np.int64)

    def load_comparisons(self, aspect: AspectInfo, query: Query, *, turing: bool) -> Comparisons:
        # Without comparisons, the table is empty and the export has no file of them.
        none = self.table.get("n_ratings") == 0
        return self.folder.comparisons(
            aspect.name, self._number, turing=turing, filter=query.rater_filter, may_lack=none
        )

    def list_ways(self, query: Any) -> Sequence[tuple[AspectInfo, str]]:
        rows = [self.table] if query.aspect else self.table["rows"]
        return [(AspectInfo(row["aspect"]), row["judged"]) for row in rows]

    def describe_judged(self, aspect: AspectInfo | None = None, way: str = "") -> Table:
        return {}

    def load_judged(self, aspect: AspectInfo, way: str, query: Query) -> RaterJudgements:
        return self.folder.judged(aspect.name, way, filter=query.rater_filter)

    def load_controls(self, query: Query) -> Mapping[str, tuple[int, int]]:
        return {}

    def load_outputs(self, subset: str) -> tuple[IntArray, IntArray, IntArray]:
        places, cluster, system = self.folder.outputs(subset)
        return np.array([*map(self._number, places)], dtype=np.int64), cluster, system

    def choose_key(self, key: str) -> str:
        return str(self.table["key"])

    def load_parts(self, outputs: IntArray, key: str) -> NDArray[Any]:
        return part_column(self.folder.metas[self.places[number][0]].get(key) for number in outputs.tolist())

    def score_sets(self, query: Query, aspect: str | None, *, one_each: bool = False) -> list[Any]:
        return list(self.entry["sets"])

    def score_sets_by_references(self, query: Query, aspect: str) -> tuple[list[str], list[dict[str, Any]]]:
        by_evaluator: dict[tuple[str, str], dict[str, Any]] = {}
        for name in self.entry["sets"]:
            self.folder.check_set(name)
            row = self.folder.score_sets[name]
            by_evaluator.setdefault((row["evaluator"], row["aspect"]), {})[row["references"]] = name
        return list(self.entry["references"]), [found for _, found in sorted(by_evaluator.items())]

    def describe_references(self, names: Sequence[str]) -> Table:
        return {}

    def load_scored(self, score_set: str, outputs: IntArray) -> Scored:
        values, row = self.folder.values(score_set), self.folder.score_sets[score_set]
        members = ("evaluator", "name", "kind", "signature", "aspect", "references", "short_signature", "scored_at")
        return Scored(
            metric=np.array([values.get(self.places[number], np.nan) for number in outputs.tolist()], dtype=np.float64),
            own=tuple(row.get("systems") or ()),
            score_set=score_set,
            n_in_training=int(row["n_in_training"]),
            **{key: row[key] for key in members},
        )

    def find_learned(self, score_sets: Sequence[str], outputs: IntArray) -> BoolArray:
        learned = set().union(*(self.folder.trained_on(name) for name in score_sets))
        return np.array([self.places[number] in learned for number in outputs.tolist()], dtype=bool)

    def load_system_scores(self, query: Any) -> tuple[Table, Scores, Any]:
        (name,) = self.entry["sets"]
        scores = self.folder.score_columns(name)
        return self.table["evaluator"], scores, self.folder.score_sets[name].get("systems") or ()

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
