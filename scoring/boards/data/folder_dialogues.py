"""Ratings of whole dialogues and their turns out of an exported folder, as columns. Other judgements: `folder`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scoring.boards.data.columns import Labels, Ratings, named_by, number_raters
from scoring.boards.data.files import ExportFolder, Place
from scoring.boards.metrics.dialogues import NO_SYSTEM, Turns


def read_dialogues(folder: ExportFolder, aspect: str, *, filter: str = "") -> tuple[Ratings, tuple[str, ...]]:
    """Ratings of whole dialogues for one aspect, each dialogue being an output of its own item, and the names of the
    dialogues by their numbers."""
    folder.must_have("ratings")
    out, systems = folder.left_out(filter), _systems(folder)
    units, keys, raters = folder.units(), Labels(), Labels()
    found, n_filtered = [], 0
    for row in folder.rows("ratings"):
        if row.get("aspect") != aspect or not row.get("dialogue"):
            continue
        if out(row["rater"]):
            n_filtered += 1
            continue
        unit = units.code(systems.get(row["dialogue"]) or NO_SYSTEM, None)
        said = float(row["value"]), bool(row.get("simulated"))
        found.append((keys.code(row["dialogue"]), unit, raters.code(row["rater"]), *said))
    columns = zip(*found, strict=True) if found else ((),) * 5
    key, system, rater, value, simulated = (np.array(column) for column in columns)
    key, system, rater = (
        names.sort()[column.astype(np.int64)] for names, column in ((keys, key), (units, system), (raters, rater))
    )
    value = value.astype(np.float64)
    new = number_raters(rater, len(raters.names), (key, np.unique(value, return_inverse=True)[1]))
    rater = new[rater]
    order = np.lexsort((rater, value, key))
    key, system, rater, value = key[order], system[order], rater[order], value[order]
    made = Ratings(
        key,
        key,
        key,
        system,
        rater,
        value,
        simulated[order].astype(bool),
        units,
        named_by(raters.names, new),
        n_filtered,
    )
    return made, keys.names


def read_turns(folder: ExportFolder, dialogues: Sequence[str]) -> tuple[list[Place], Turns]:
    """The outputs that are turns of these dialogues: those whose item has the dialogue as its group, of the dialogue's
    system where it names one."""
    number = {key: place for place, key in enumerate(dialogues)}
    systems = _systems(folder)
    places: list[Place] = []
    found = []
    for row in folder.rows("outputs"):
        group = folder.group(row["item"])
        if group in number and systems.get(group) in (None, "", row["system"]):
            places.append((row["item"], row["system"], row.get("step")))
            found.append(number[group])
    return places, Turns(np.array(found, dtype=np.int64), len(dialogues))


def _systems(folder: ExportFolder) -> dict[str, str | None]:
    return {row["id"]: row.get("system") for row in folder.rows("dialogues")}
