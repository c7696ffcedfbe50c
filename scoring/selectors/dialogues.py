"""Ratings of whole dialogues, and what an evaluator says of a dialogue: the mean of its scores of the outputs whose
items have the dialogue as their group (of the dialogue's system, where it names one)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.models import Aspect, Dialogue, Output, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from scoring.boards.data.columns import Labels, Ratings, Units, named_by, number_raters
from scoring.boards.metrics.compute import People
from scoring.boards.metrics.dialogues import NO_SYSTEM, Turns

from ..models import ScoreSet
from .aspects import choose_aspect
from .columns import CHUNK, load_columns
from .people import get_units, left_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The system of a dialogue that names none.
NOBODY = 0


def choose_dialogue_aspect(project: Project, name: str) -> Aspect:
    """The aspect of that name; without a name the first by which dialogues were rated."""
    if name:
        return choose_aspect(project, name, judged_by="ratings")
    found = Aspect.objects.filter(project=project, ratings__dialogue__isnull=False).order_by("position", "pk").first()
    if found is None:
        raise BadInput(
            f"Nobody has rated whole dialogues in {project.slug} yet. Upload dialogues.jsonl, and ratings with "
            "`dialogue` in place of item and system."
        )
    return found


def load_dialogue_people(project: Project, query: Any) -> tuple[Aspect, People]:
    """The aspect that is meant and people's mean for every dialogue, as if it were an output of its own item."""
    aspect = choose_dialogue_aspect(project, query.aspect)
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
    kept = ~left_out(project, query.filter, raters.names)[rater] if len(rater) else np.zeros(0, dtype=bool)
    dialogue, key, system, rater = (column[kept] for column in (dialogue, key, system, rater))
    value, simulated = value[kept], simulated[kept]
    new = number_raters(rater, len(raters.names), (key, np.unique(value, return_inverse=True)[1]))
    rater, names = new[rater], named_by(raters.names, new)
    order = np.lexsort((rater, value, key))
    columns: list[Any] = [column[order] for column in (dialogue, key, key, system, rater, value, simulated)]
    ratings = Ratings(*columns, units=units, raters=names, n_filtered=int((~kept).sum()))
    return aspect, People(ratings, method=query.ratings, subset=query.systems)


@dataclass(frozen=True)
class DialogueTurns:
    """The outputs that are turns of the rated dialogues, by number, and of which dialogue each is."""

    output: NDArray[np.int64]
    turns: Turns

    def mean(self, score_set: ScoreSet) -> NDArray[np.float64]:
        """The evaluator's mean over the turns of every dialogue."""
        if not len(self.turns):
            return self.turns.mean(np.zeros(0))
        return self.turns.mean(load_columns(score_set).of(self.output))

    def outside_training(self, sets: list[ScoreSet]) -> NDArray[np.bool_]:
        """Which dialogues no evaluator of these sets has learned from."""
        seen = np.zeros(len(self.output), dtype=bool)
        for score_set in sets:
            if score_set.n_in_training:
                seen |= load_columns(score_set).learned_from(self.output)
        return self.turns.outside(seen)


def load_turns(project: Project, people: People) -> DialogueTurns:
    rows = Dialogue.objects.filter(pk__in=people.output.tolist()).values_list("pk", "key", "system_id")
    named = {key: (pk, system) for pk, key, system in rows.iterator(chunk_size=CHUNK)}
    place = {int(pk): number for number, pk in enumerate(people.output)}
    outputs = Output.objects.filter(project=project, item__group__in=list(named)).order_by("pk")
    found = []
    for pk, group, system in outputs.values_list("pk", "item__group", "system_id").iterator(chunk_size=CHUNK):
        dialogue, wanted = named[group]
        if wanted in (None, system):
            found.append((pk, place[dialogue]))
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return DialogueTurns(pairs[:, 0], Turns(pairs[:, 1], len(people)))
