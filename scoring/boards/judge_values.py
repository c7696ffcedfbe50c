"""Compute the scores of judges again from the raw answers in an export."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from scoring.boards.data.files import ExportFolder, FolderError, Row
from scoring.ml.errors import ScoringError
from scoring.ml.judges.answers import Answer, Reading
from scoring.ml.judges.reader import WINS, Reader, read_judge

#: Item, system and step, as text.
Place: TypeAlias = tuple[str, str, str]
Values: TypeAlias = dict[str, float | None]


@dataclass
class JudgeScores:
    """The exported and the recomputed scores of a judge by item, system and step. Outputs without answers in the export
    are in neither."""

    title: str
    exported: Values = field(default_factory=dict)
    recomputed: Values = field(default_factory=dict)


def compute_judge_scores(folder: ExportFolder) -> Iterator[JudgeScores]:
    """Yield the scores of each judge with raw answers. Raises `FolderError` for rows that cannot be read."""
    if not folder.has("judge_answers"):
        return
    sets = {row["id"]: row for row in folder.rows("score_sets") if row.get("kind") == "judge"}
    readers = {name: _make_reader(row) for name, row in sets.items()}
    readings: dict[str, dict[tuple[Place, ...], dict[int, dict[Place, Reading]]]] = {
        name: defaultdict(lambda: defaultdict(dict)) for name in sets
    }
    for number, row in enumerate(folder.rows("judge_answers"), 1):
        name = _find_set(sets, row)
        if name is None:
            continue
        try:
            first, second, answer = _read_row(row)
            sample = int(row.get("sample") or 0)
        except (TypeError, ValueError, KeyError) as error:
            raise FolderError(f"judge_answers, row {number}", f"it cannot be read ({error})") from error
        unit = (first,) if second is None else tuple(sorted((first, second)))
        readings[name][unit][sample][first] = readers[name].read(answer)
    exported: dict[str, Values] = {name: {} for name in sets}
    for row in folder.rows("scores"):
        if row["set"] in exported:
            place = (str(row["item"]), str(row["system"]), _write_step(row.get("step")))
            exported[row["set"]][_name(place)] = row.get("value")
    for name, units in readings.items():
        if units:
            values = _average(readers[name], units)
            shared = {place: value for place, value in values.items() if place in exported[name]}
            there = {place: exported[name][place] for place in shared}
            yield JudgeScores(f"answers of {sets[name]['evaluator']}, {sets[name]['aspect']}", there, shared)


def _make_reader(row: Row) -> Reader:
    options = row.get("options")
    try:
        return Reader(read_judge(json.loads(options) if isinstance(options, str) else options or {}))
    except (ScoringError, KeyError, TypeError, ValueError) as error:
        raise FolderError("score_sets", f"the options of the judge {row['id']} cannot be read ({error})") from error


def _find_set(sets: dict[str, Row], row: Row) -> str | None:
    """Return the name of the score set to which an answer belongs: that of its judge and model."""
    for name, one in sets.items():
        if one["evaluator"] == row["evaluator"] and one["signature"].startswith(f"judge|model:{row['model']}|"):
            return name
    return None


def _read_row(row: Row) -> tuple[Place, Place | None, Answer]:
    """Return the text of an answer, or both texts in the order in which they were shown, and the answer."""
    first = (str(row["item"]), str(row["system"]), _write_step(row.get("step")))
    other = row.get("system_b")
    second = None if other in (None, "") else (str(row["item"]), str(other), _write_step(row.get("step_b")))
    tokens = row.get("tokens") or []
    answer = Answer.from_json(
        {
            "text": row.get("text") or "", "finish": row.get("finish") or "",
            "refused": row.get("refused") in (True, "true"),
            "tokens": json.loads(tokens) if isinstance(tokens, str) else tokens,
        },
        str(row["model"]),
    )  # fmt: skip
    return first, second, answer


def _average(reader: Reader, units: Any) -> Values:
    """Return the mean of each output over samples, for pairs over its comparisons."""
    values: dict[Place, list[float]] = defaultdict(list)
    for unit, samples in units.items():
        for by_first in samples.values():
            for place in unit:
                values[place] += []
            if len(by_first) < len(unit):
                continue
            reading = reader.join([by_first[place] for place in unit])
            if len(unit) == 1:
                values[unit[0]] += [] if reading.value is None else [reading.value]
            elif reading.verdict:
                values[unit[0]].append(WINS[reading.verdict])
                values[unit[1]].append(1 - WINS[reading.verdict])
    return {_name(place): math.fsum(row) / len(row) if row else None for place, row in values.items()}


def _write_step(step: Any) -> str:
    return "" if step in (None, "") else str(step)


def _name(place: Place) -> str:
    return " / ".join(part for part in place if part)
