"""Human scores and metric scores as boards of evaluators compare them, and notes of their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evalapp.stats.core.coding import BoolArray, FloatArray
from evalapp.stats.correlation.coefficients import Coefficient
from evalapp.stats.correlation.meta_evaluation import Correlations, CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Ratings, Units, select_ratings
from scoring.boards.systems.rankings import read_draws

Settings = Mapping[str, Any]
Table = dict[str, Any]

COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")

FEW_SYSTEMS = 6

#: Evaluators that scored a smaller share of the outputs of others are excluded from the common outputs.
LEAST_SHARE = 0.5

FIXED = "the evaluator's own value of each system is held fixed in the interval"

WIDER = "its value uses all outputs of each system, also those not compared here"

LEARNED = "the mean of its scores: its own value of each system includes outputs in its training data"

#: Maximum number of evaluators that a note names.
MOST_NAMED = 5


class People:
    """One human score per output of a subset of systems, sorted by item and system; `output` identifies an output in
    the source."""

    def __init__(self, ratings: Ratings, *, method: str, subset: str) -> None:
        ratings, value, self.counted = select_ratings(ratings, method, subset)
        kept, value = ratings.only(np.isfinite(value)), value[np.isfinite(value)]
        _, first, inverse = np.unique(kept.output, return_index=True, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(first))
        means = np.bincount(inverse, weights=value, minlength=len(first)) / np.maximum(counts, 1)
        # By item and system, so that sums and resamples are the same on every machine.
        order = np.lexsort((kept.system[first], kept.item[first]))
        first = first[order]
        # Means that differ only by rounding are ties.
        self.mean: FloatArray = np.round(means[order], 10)
        self.output = kept.output[first]
        self.item, self.cluster, self.system = kept.item[first], kept.cluster[first], kept.system[first]
        self.units: Units = kept.units
        # The ratings behind the means, each with the position of its output.
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self.rating_place, self.rating_value, self.rating_rater = place[inverse], value, kept.rater
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

    def draw(self, settings: Settings) -> Bootstrap:
        """Return the bootstrap of groups of items, with the draws in `settings`."""
        return Bootstrap(cluster=self.cluster, **read_draws(settings))

    def correlate(self, metric: FloatArray, correlation: CorrelationSettings, draws: Bootstrap) -> Correlations:
        """Return the correlations of scores of these outputs with the human scores."""
        return correlate(metric, self.mean, self.item, self.system, settings=correlation, bootstrap=draws)

    def only(self, rows: BoolArray) -> People:
        """Return the scores of some of the outputs; counts of ratings stay those of all."""
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
    """A score set with its scores of the outputs of `People`, in their order (nan: none).

    `own` are values of an evaluator that scores whole systems; they are not used if some outputs are in its training
    data, because such a value cannot be split.
    """

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
        """Whether it is a trivial baseline: one of the catalogue, or one trained on the text alone or on everything but
        the text (`inputs` in its signature)."""
        one_sided = self.kind == "trained" and any(part.startswith("inputs:") for part in self.signature.split("|"))
        return one_sided or self.kind == "sentinel"

    @property
    def has_own(self) -> bool:
        """Whether its own values of systems are used."""
        return bool(self.own) and not self.n_in_training

    @property
    def note(self) -> str:
        """The note on its values at the system level."""
        return FIXED if self.has_own else LEARNED if self.own else ""

    def column(self, people: People, level: str) -> FloatArray:
        """Return the scores; at the system level the evaluator's own values of systems, if used, for the outputs that
        it scored (or all), so that human means use the same outputs as in other rows."""
        if level != "system" or not self.has_own or not len(people):
            return self.metric
        own = self.of_units(people.units)[people.system]
        is_scored = np.isfinite(self.metric)
        return np.where(is_scored, own, np.nan) if is_scored.any() else own

    def of_units(self, units: Units) -> FloatArray:
        own = {(row["system"], row["step"]): row["value"] for row in self.own}
        values = [own.get((unit.name, unit.step)) for unit in units.units]
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


@dataclass(frozen=True)
class ScoredSets:
    """The score sets of a table. `outside` marks the units in no training data of their evaluators; if none can be
    compared, `learned` counts the units in each evaluator's training data. `unapplied` are trivial baselines without
    scores (name -> reason)."""

    scored: Sequence[Scored]
    outside: BoolArray
    learned: Mapping[str, int] = field(default_factory=dict)
    unapplied: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the evaluators."""
        return [one.evaluator for one in self.scored]


def list_chosen(settings: Settings) -> list[str]:
    """Return the evaluators chosen for a table; [] means all."""
    return [name for name in (settings.get("evaluators") or "").split(",") if name]


def chosen_part(settings: Settings) -> str:
    """Return the part of the signature with the chosen evaluators, if any."""
    chosen = list_chosen(settings)
    return f"|evaluators:{'+'.join(chosen)}" if chosen else ""


def with_missing(note: str, settings: Settings, rows: Sequence[Mapping[str, Any]]) -> str:
    """Add to a note the chosen evaluators without a row."""
    there = {row["evaluator"] for row in rows}
    missing = [name for name in list_chosen(settings) if name not in there]
    return " ".join([*filter(None, [note]), f"No matching scores: {', '.join(missing)}."]) if missing else note


def with_wider(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the evaluators whose own values use more outputs than the table compares."""
    return sorted({row["evaluator"] for row in rows if WIDER in row["note"]})


def of_all_outputs(names: Sequence[str]) -> str:
    """Return a note on evaluators whose values use more outputs than are compared, if any."""
    named = f"{', '.join(names[:MOST_NAMED])}{' and others' if len(names) > MOST_NAMED else ''}"
    has = "has" if len(names) == 1 else "have"
    return f"{named} {has} one value for all outputs of a system, also those not compared here." if names else ""


def joined(*notes: str) -> str:
    """Join non-empty sentences."""
    return " ".join(filter(None, notes))


def describe_scored(one: Scored) -> Table:
    """Return the members of a row that name the evaluator."""
    names = ("evaluator", "name", "kind", "is_sentinel", "score_set", "signature", "short_signature")
    return {name: getattr(one, name) for name in names}


def no_estimate(reason: str) -> Table:
    return {"value": None, "low": None, "high": None, "n": 0, "note": reason}


def sign_table(settings: Settings, aspect: str, what: str, boot: str = "boot:inputs") -> str:
    parts = [what, f"coef:{settings['coefficient']}", boot]
    parts += [f"{name}:{settings[name]}" for name in ("ratings", "systems", "references") if settings.get(name)]
    return "|".join([*parts, f"aspect:{aspect}"] if aspect else parts) + chosen_part(settings)
