"""From columns to the leaderboard of evaluators over whole dialogues, as plain values: an evaluator's mean over the
turns against people's ratings of the whole. The correlations of single columns are in `dialogue`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalapp.side_figures import FAILED, side_figure
from evalapp.stats.agreement.calibration import calibrate_raters
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.dialogue import calibrated_correlations, dialogue_scores
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import NO_SYSTEM
from scoring.boards.metrics.by_ratings import Progress, evaluators_table
from scoring.boards.metrics.people import COEFFICIENTS, People, Scored
from scoring.boards.systems.rankings import read_draws

UNSCORED = "it has no scores"
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
    learned: Mapping[str, int] | None = None,
    unapplied: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """`evaluators_table` over dialogues: `people` has every dialogue as an output of its own item, the `scored` have
    the means over turns. Pairs within items there are none, so no accuracy of pairs; instead `calibrated`, Spearman's
    correlation of the systems' means with people's calibrated means of the systems."""
    of_outputs = {**settings, "level": "segment"}
    table = evaluators_table(
        people, scored, of_outputs, aspect=aspect, outside=outside, learned=learned, unapplied=unapplied,
        progress=progress,
    )  # fmt: skip
    followed, why = dict[str, Estimate](), FAILED
    with side_figure("The calibrated correlations of systems"):
        followed, why = _with_calibrated(people, scored, settings, outside), UNSCORED
    for row in table["rows"]:
        row.pop("accuracy")
        row["calibrated"] = followed.get(row["evaluator"], Estimate.undefined(row["note"] or why)).as_dict()
        for name in COEFFICIENTS:
            row[name]["note"] = row[name]["note"].replace(" items ", " dialogues ")
    table["level"] = "dialogue"
    table["note"] = table["note"].replace("rated output", "rated dialogue")
    table["population"] = table["population"].replace("items", "dialogues")
    table["coverage"] = table["coverage"].replace("groups of items", "dialogues").replace("groups", "dialogues")
    if "population" in table["test"]:
        table["test"]["population"] = table["test"]["population"].replace("items", "dialogues")
    table["signature"] = table["signature"].replace("level:segment", "level:dialogue|of:mean-over-turns")
    if len(people) and not len(turns):
        table["note"] = NO_TURNS
    return table


def _with_calibrated(
    people: People, scored: Sequence[Scored], settings: Mapping[str, Any], outside: BoolArray
) -> dict[str, Estimate]:
    """By evaluator, its mean of each system against people's, once the raters' leniency is taken out; over dialogues
    that name their system and that no evaluator learned from."""
    named = np.array([unit.name != NO_SYSTEM for unit in people.units.units], dtype=bool)
    rows = outside & named[people.system] if len(people) else outside
    part = people.only(rows)
    of_rating = part.system[part.rating_place]
    found = calibrate_raters(part.rating_value, of_rating, part.rating_rater)
    means = {"": {row.label: row.estimate.value for row in found.systems}}
    return {
        one.evaluator: calibrated_correlations(
            one.metric[rows], np.arange(len(part)), part.system, means, bootstrap=Bootstrap(**read_draws(settings))
        )[""]
        for one in scored
    }
