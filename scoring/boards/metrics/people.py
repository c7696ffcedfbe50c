"""Human scores and evaluators' scores as boards of evaluators compare them, and what their notes say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evalapp.stats.agreement.judged import explain_missing
from evalapp.stats.core.coding import BoolArray, FloatArray
from evalapp.stats.correlation.coefficients import Coefficient
from scoring.boards.data.columns import Ratings, Units, normalised, persons, without_repeats

Settings = Mapping[str, Any]
Table = dict[str, Any]

COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")


FEW_SYSTEMS = 6


#: An evaluator that scored a smaller part of what others scored does not decide on what all are compared.
LEAST_SHARE = 0.5


FIXED = "the evaluator's own value of each system is held fixed in the interval"


WIDER = "its value counts all outputs of each system, also those not compared here"


LEARNED = (
    "the mean of its scores: its own value of each system counts outputs of items that it learned from, so it is no "
    "evidence"
)


#: Evaluators that are named where nothing is left to compare on, those that learned most.
MOST_NAMED = 5


class People:
    """One human score per output of the wanted systems, with what the correlation needs to know about it. Outputs are
    in the order of item and system; `output` is whatever identifies one where the ratings came from."""

    def __init__(self, ratings: Ratings, *, method: str, subset: str) -> None:
        repeat = ratings.repeat
        repeats = int(ratings.units.wanted(subset)[ratings.system[repeat]].sum())
        ratings = ratings.only(~repeat)
        value = normalised(ratings, method)
        ratings = replace(ratings, rater=persons(ratings.rater, ratings.raters))
        wanted = ratings.units.wanted(subset)[ratings.system] if len(ratings) else np.zeros(0, dtype=bool)
        #: Sentences on which judgements count.
        undefined = int((~np.isfinite(value[wanted])).sum())
        self.counted = [*without_repeats(repeats), *explain_missing(undefined, method)]
        wanted &= np.isfinite(value)
        kept = ratings.only(wanted)
        _, first, inverse = np.unique(kept.output, return_index=True, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(first))
        means = np.bincount(inverse, weights=value[wanted], minlength=len(first)) / np.maximum(counts, 1)
        # By item and system, not by what an output is called here: sums and draws are the same on every machine.
        order = np.lexsort((kept.system[first], kept.item[first]))
        first = first[order]
        # Means that differ by rounding only are ties.
        self.mean: FloatArray = np.round(means[order], 10)
        self.output = kept.output[first]
        self.item, self.cluster, self.system = kept.item[first], kept.cluster[first], kept.system[first]
        self.units: Units = kept.units
        #: The ratings behind the means; `place` is the place of their output here.
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self.rating_place, self.rating_value, self.rating_rater = place[inverse], value[wanted], kept.rater
        self.n_ratings = len(kept)
        self.n_raters = len(np.unique(kept.rater))
        self.n_simulated = int(kept.simulated.sum())

    def __len__(self) -> int:
        return len(self.output)

    def count(self, compared: People) -> Table:
        """Return the counts of a table that compares evaluators on the outputs of `compared`."""
        return {
            "n_outputs": len(compared),
            "n_excluded": len(self) - len(compared),
            "n_ratings": self.n_ratings,
            "n_raters": self.n_raters,
            "n_systems": len(np.unique(compared.system)),
            "n_items": len(np.unique(compared.item)),
            "n_simulated": self.n_simulated,
            "counted": self.counted,
        }

    def only(self, rows: BoolArray) -> People:
        """The same people's scores of some of the outputs; the counts of ratings stay those of all."""
        part = copy(self)
        for name in ("output", "mean", "item", "cluster", "system"):
            setattr(part, name, getattr(self, name)[rows])
        place = np.cumsum(rows) - 1
        of_part = rows[self.rating_place]
        part.rating_place = place[self.rating_place[of_part]]
        part.rating_value, part.rating_rater = self.rating_value[of_part], self.rating_rater[of_part]
        return part


@dataclass(frozen=True)
class Scored:
    """One evaluator's set of scores: what is told of it, and its values of the outputs of `People`, in their order
    (nan = none). `own` are the values of an evaluator that looks at all outputs of a system at once; they count for
    nothing where it learned from some of these outputs, since such a value cannot be parted."""

    evaluator: str
    name: str
    kind: str
    signature: str
    metric: FloatArray
    aspect: str = ""
    references: str = ""
    short_signature: str = ""
    scored_at: str | None = None
    n_in_training: int = 0
    score_set: int | str | None = None
    own: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def is_sentinel(self) -> bool:
        """Whether it cannot know quality: a sentinel of the catalogue, or one that was trained to read the text alone,
        or all but the text (`inputs` in its signature)."""
        one_sided = self.kind == "trained" and any(part.startswith("inputs:") for part in self.signature.split("|"))
        return one_sided or self.kind == "sentinel"

    @property
    def has_own(self) -> bool:
        """Whether its own values of systems can be compared with people's."""
        return bool(self.own) and not self.n_in_training

    @property
    def note(self) -> str:
        """What the level of systems says of its values."""
        return FIXED if self.has_own else LEARNED if self.own else ""

    def column(self, people: People, level: str) -> FloatArray:
        """The scores; at the level of systems the evaluator's own value of each, where it has one that counts, for the
        outputs that it scored (all, where it scores none singly): people's means must be of the same outputs as in
        other rows."""
        if level != "system" or not self.has_own or not len(people):
            return self.metric
        own = self.of_units(people.units)[people.system]
        is_scored = np.isfinite(self.metric)
        return np.where(is_scored, own, np.nan) if is_scored.any() else own

    def of_units(self, units: Units) -> FloatArray:
        own = {(row["system"], row["step"]): row["value"] for row in self.own}
        values = [own.get((unit.name, unit.step)) for unit in units.units]
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def list_chosen(settings: Settings) -> list[str]:
    """The evaluators that a table was asked to compare; empty where it compares all."""
    return [name for name in (settings.get("evaluators") or "").split(",") if name]


def chosen_part(settings: Settings) -> str:
    """The part of the signature that tells them, only where some were chosen."""
    chosen = list_chosen(settings)
    return f"|evaluators:{'+'.join(chosen)}" if chosen else ""


def with_missing(note: str, settings: Settings, rows: Sequence[Mapping[str, Any]]) -> str:
    """The note of a table with those of the chosen evaluators that have no row."""
    there = {row["evaluator"] for row in rows}
    missing = [name for name in list_chosen(settings) if name not in there]
    return " ".join([*filter(None, [note]), f"No scores that fit here: {', '.join(missing)}."]) if missing else note


def with_wider(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The evaluators whose own values count more outputs than the table compares."""
    return sorted({row["evaluator"] for row in rows if WIDER in row["note"]})


def of_all_outputs(names: Sequence[str]) -> str:
    """That these evaluators' values count more outputs than are compared; empty where there are none."""
    named = f"{', '.join(names[:MOST_NAMED])}{' and others' if len(names) > MOST_NAMED else ''}"
    has = "has" if len(names) == 1 else "have"
    return f"{named} {has} one value for all outputs of a system, also those not compared here." if names else ""


def joined(*notes: str) -> str:
    """Sentences after each other, without empty ones."""
    return " ".join(filter(None, notes))
