"""Ratings of whole dialogues, and what an evaluator says of a dialogue: the mean of its scores of the outputs whose
items have the dialogue as their group (of the dialogue's system, where it names one)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.models import Aspect, Dialogue, Output, Rating
from evalapp.accounts.models import Project
from scoring.boards.data.columns import Labels, Ratings, Units, named_by, number_raters
from scoring.boards.metrics.dialogues import NO_SYSTEM

from .columns import CHUNK
from .people import get_units, left_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The system of a dialogue that names none.
NOBODY = 0


def load_dialogues(project: Project, aspect: Aspect, filter: str = "") -> Ratings:
    """Ratings of whole dialogues, each dialogue as the output of its own item, without the raters of the filter."""
    units = get_units(project)
    units = Units({**units.systems, NOBODY: (NO_SYSTEM, "machine")})
    keys, raters = Labels(), Labels()
    rows = Rating.objects.filter(aspect=aspect, dialogue__isnull=False).values_list(
        "dialogue_id", "dialogue__key", "dialogue__system_id", "rater", "value", "simulated"
    )
    found = [
        (pk, keys.code(key), units.code(system or NOBODY, None), raters.code(rater), value, simulated)
        for pk, key, system, rater, value, simulated in rows.iterator(chunk_size=CHUNK)
    ]
    table: Any = list(zip(*found, strict=True)) or [[] for _ in range(6)]
    dialogue, key, system, rater = (np.array(column, dtype=np.int64) for column in table[:4])
    value, simulated = np.array(table[4], dtype=np.float64), np.array(table[5], dtype=bool)
    key, system, rater = keys.sort()[key], units.sort()[system], raters.sort()[rater]
    kept = ~left_out(project, filter, raters.names)[rater] if len(rater) else np.zeros(0, dtype=bool)
    dialogue, key, system, rater = (column[kept] for column in (dialogue, key, system, rater))
    value, simulated = value[kept], simulated[kept]
    new = number_raters(rater, len(raters.names), (key, np.unique(value, return_inverse=True)[1]))
    rater, names = new[rater], named_by(raters.names, new)
    order = np.lexsort((rater, value, key))
    columns: list[Any] = [column[order] for column in (dialogue, key, key, system, rater, value, simulated)]
    return Ratings(*columns, units=units, raters=names, n_filtered=int((~kept).sum()))


def load_turns(project: Project, dialogues: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The outputs that are turns of these dialogues, and for each the place of its dialogue."""
    rows = Dialogue.objects.filter(pk__in=dialogues.tolist()).values_list("pk", "key", "system_id")
    named = {key: (pk, system) for pk, key, system in rows.iterator(chunk_size=CHUNK)}
    place = {pk: number for number, pk in enumerate(dialogues.tolist())}
    outputs = Output.objects.filter(project=project, item__group__in=list(named)).order_by("pk")
    found = []
    for pk, group, system in outputs.values_list("pk", "item__group", "system_id").iterator(chunk_size=CHUNK):
        dialogue, wanted = named[group]
        if wanted in (None, system):
            found.append((pk, place[dialogue]))
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
