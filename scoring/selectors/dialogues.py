"""Ratings of whole dialogues, and what an evaluator says of a dialogue: the mean of its scores of the outputs whose
items have the dialogue as their group (of the dialogue's system, where it names one)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from annotation.models import Aspect, Dialogue, Output, Rating
from evalapp.accounts.models import Project
from scoring.boards.data.columns import Ratings, Units, build_ratings
from scoring.boards.metrics.dialogues import NO_SYSTEM

from .columns import CHUNK
from .people import filter_of, get_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The system of a dialogue that names none.
NOBODY = 0


def load_dialogues(project: Project, aspect: Aspect, filter: str = "") -> Ratings:
    """Ratings of whole dialogues, each dialogue as the output of its own item, without the raters of the filter."""
    units = get_units(project)
    units = Units({**units.systems, NOBODY: (NO_SYSTEM, "machine")})
    fields = ("dialogue_id", "dialogue__key", "dialogue__system_id", "rater", "value", "simulated")
    rated = Rating.objects.filter(aspect=aspect, dialogue__isnull=False).values_list(*fields)
    rows = (
        (pk, key, key, system or NOBODY, None, rater, value, simulated)
        for pk, key, system, rater, value, simulated in rated.iterator(chunk_size=CHUNK)
    )
    return build_ratings(rows, units, filter_of(project, filter))


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
