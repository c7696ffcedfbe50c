"""Compute the leaderboard of evaluators at the level of dialogues: mean scores over turns against ratings of
dialogues."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalapp.side_figures import FAILED, side_figure
from evalapp.stats.agreement.calibration import calibrate_raters
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.dialogue import calibrated_correlations, dialogue_scores
from evalapp.stats.resampling.bootstrap import Bootstrap
from evalapp.translation import gettext as _
from scoring.boards.base import Progress
from scoring.boards.data.columns import NO_SYSTEM
from scoring.boards.metrics.by_ratings import evaluators_table
from scoring.boards.metrics.people import COEFFICIENTS, People, ScoredSets
from scoring.boards.systems.rankings import read_draws

UNSCORED = "it has no scores"
NO_TURNS = "No output belongs to a rated dialogue: give the items of its turns the id of the dialogue as `group`."


@dataclass(frozen=True)
class Turns:
    """The outputs that are turns of rated dialogues, with the position of the dialogue of each."""

    place: IntArray
    n_dialogues: int

    def __len__(self) -> int:
        return len(self.place)

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the mean score of the turns of every dialogue, nan without scores, rounded to keep ties."""
        result = np.full(self.n_dialogues, np.nan)
        if len(self.place):
            means = dialogue_scores(values, self.place)
            result[np.asarray(means.dialogue, dtype=np.int64)] = means.mean
        return result

    def outside(self, seen: BoolArray) -> BoolArray:
        """Return the dialogues without turns in training data."""
        result = np.ones(self.n_dialogues, dtype=bool)
        result[self.place[seen]] = False
        return result


def dialogues_table(
    people: People,
    turns: Turns,
    sets: ScoredSets,
    settings: Mapping[str, Any],
    *,
    aspect: str,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return `evaluators_table` for dialogues: in `people` each dialogue is the only output of an item, and `sets`
    have means over turns.

    Without pairs within items there is no accuracy of pairs; instead `calibrated` is Spearman's correlation of system
    means with human means that are calibrated for the leniency of raters.
    """
    of_outputs = {**settings, "level": "segment"}
    table = evaluators_table(people, sets, of_outputs, aspect=aspect, progress=progress)
    followed, why = dict[str, Estimate](), FAILED
    with side_figure(_("The calibrated correlations of systems")):
        followed, why = _with_calibrated(people, sets, settings), UNSCORED
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


def _with_calibrated(people: People, sets: ScoredSets, settings: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return by evaluator the correlation of system means with calibrated human means, over dialogues with a system and
    outside of training data."""
    named = np.array([unit.name != NO_SYSTEM for unit in people.units.units], dtype=bool)
    rows = sets.outside & named[people.system] if len(people) else sets.outside
    part = people.only(rows)
    of_rating = part.system[part.rating_place]
    raters = calibrate_raters(part.rating_value, of_rating, part.rating_rater)
    means = {"": {row.label: row.estimate.value for row in raters.systems}}
    return {
        one.evaluator: calibrated_correlations(
            one.metric[rows], np.arange(len(part)), part.system, means, bootstrap=Bootstrap(**read_draws(settings))
        )[""]
        for one in sets.scored
    }
