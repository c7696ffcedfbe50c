"""From columns to the leaderboard of evaluators over whole dialogues, as plain values: an evaluator's mean over the
turns against people's ratings of the whole. The correlations of single columns are in `dialogue`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalapp.stats.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.dialogue import dialogue_scores
from evalapp.stats.meta_tables import COEFFICIENTS, People, Progress, Scored, evaluators_table

#: The system of a dialogue that names none.
NO_SYSTEM = "(no system)"
NO_TURNS = "No output belongs to a rated dialogue: give the items of its turns the id of the dialogue as `group`."


@dataclass(frozen=True)
class Turns:
    """Which outputs are turns of the rated dialogues: for each such output the place of its dialogue among the
    `n_dialogues` of `People`."""

    place: IntArray
    n_dialogues: int

    def __len__(self) -> int:
        return len(self.place)

    def mean(self, values: FloatArray) -> FloatArray:
        """The mean of the turns' scores in every dialogue, nan where it has none; rounding breaks no ties."""
        found = np.full(self.n_dialogues, np.nan)
        if len(self.place):
            means = dialogue_scores(values, self.place)
            found[np.asarray(means.dialogue, dtype=np.int64)] = means.mean
        return found

    def outside(self, seen: BoolArray) -> BoolArray:
        """The dialogues without a turn among those that an evaluator has learned from."""
        found = np.ones(self.n_dialogues, dtype=bool)
        found[self.place[seen]] = False
        return found


def dialogues_table(
    people: People,
    turns: Turns,
    scored: Sequence[Scored],
    settings: Mapping[str, Any],
    *,
    aspect: str,
    outside: BoolArray,
    unapplied: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """`evaluators_table` over dialogues: `people` has every dialogue as an output of its own item, the `scored` have
    the means over turns. Pairs within items there are none, so no accuracy of pairs."""
    of_outputs = {**settings, "level": "segment"}
    table = evaluators_table(
        people, scored, of_outputs, aspect=aspect, outside=outside, unapplied=unapplied, progress=progress
    )
    for row in table["rows"]:
        row.pop("accuracy")
        for name in COEFFICIENTS:
            row[name]["note"] = row[name]["note"].replace(" items ", " dialogues ")
    table["level"] = "dialogue"
    table["signature"] = table["signature"].replace("level:segment", "level:dialogue|of:mean-over-turns")
    if len(people) and not len(turns):
        table["note"] = NO_TURNS
    return table
