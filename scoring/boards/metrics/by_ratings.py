"""From columns to the leaderboards of evaluators, as plain values: how well scores follow people's ratings, against one
reference set (`evaluators_table`) or several side by side (`enhanced_table`). Tables of systems are in `tables`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from evalapp.side_figures import FAILED, side_figure, side_note
from evalapp.stats.agreement.judged import without_value
from evalapp.stats.core.coding import BoolArray, FloatArray
from evalapp.stats.core.common_rows import find_common_rows
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.multiple_tests import holm
from evalapp.stats.correlation.coefficients import Coefficient
from evalapp.stats.correlation.meta_evaluation import (
    OTHER_SYSTEMS,
    THESE_SYSTEMS,
    Correlations,
    CorrelationSettings,
    correlate,
)
from evalapp.stats.correlation.paired import compare
from evalapp.stats.correlation.significance import AllPairs
from evalapp.stats.resampling.bootstrap import FEW_CLUSTERS, Bootstrap
from evalapp.stats.resampling.jackknife import NAME
from scoring.boards.data.columns import Ratings, Units, normalised, persons, without_repeats
from scoring.boards.metrics.significance import (
    by_place,
    ceiling_of,
    corrected,
    described,
    extra_figures,
    no_figures,
    tell_apart,
)  # fmt: skip
from scoring.boards.systems.rankings import draws_of

COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")
FEW_SYSTEMS = 6
#: Intervals over outputs were simulated from 30 and from so many groups (docs/results/intervals.md).
MOST_SIMULATED = 100
#: An evaluator that scored a smaller part of what others scored does not decide on what all are compared.
LEAST_SHARE = 0.5
FIXED = "the evaluator's own value of each system is held fixed in the interval"
WIDER = "its value counts all outputs of each system, also those not compared here"
LEARNED = (
    "the mean of its scores: its own value of each system counts outputs of items that it learned from, so it is no "
    "evidence"
)
NOTHING = "no output can be compared"
NOT_SCORED = "not scored with this set"
#: Evaluators that are named where nothing is left to compare on, those that learned most.
MOST_NAMED = 5

Settings = Mapping[str, Any]
Table = dict[str, Any]
Progress = Callable[[int, int], None]


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
        self.counted = [*without_repeats(repeats), *without_value(undefined, method)]
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


def find_common_outputs(
    people: People, scored: Sequence[Scored], settings: Settings, outside: BoolArray
) -> tuple[BoolArray, dict[int, str]]:
    """The outputs that the table is about, among `outside`; and by place why an evaluator is not compared with others.

    At the level of systems these are the outputs that all evaluators have scored, so that every row has the same means
    of people. An evaluator that scored less than half of what others did is set aside unless it was chosen by name.
    At other levels each row is over its own outputs (its n says so), and the tests are over the common ones.
    """
    if settings["level"] != "system" or not len(people):
        return outside, {}
    common = find_common_rows(
        [one.column(people, "system") for one in scored], outside, people.system, least=FEW_SYSTEMS,
        share=0.0 if chosen_of(settings) else LEAST_SHARE, what="systems",
    )  # fmt: skip
    return (common.rows if common.used else outside), common.reasons


def evaluators_table(
    people: People,
    scored: Sequence[Scored],
    settings: Settings,
    *,
    aspect: str,
    outside: BoolArray,
    learned: Mapping[str, int] | None = None,
    unapplied: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Table:
    """Settings, counts and one row per evaluator, the highest Pearson first. `outside` marks the outputs that no
    evaluator of the table has learned from: all are compared on them (at the level of systems on those of them that all
    have scored: `find_common_outputs`); where there are none, `learned` says of how many
    each has. `unapplied`: name -> reason of the sentinels that stand in the table, too. `settings`: level, grouping,
    systems, references, ratings; coefficient and test say by what the evaluators are tested against each other, and of
    which coefficient there is a ceiling; evaluators names those that were chosen. `progress` is told how many steps are
    done, of how many: the tests are half of them."""
    used, aside = find_common_outputs(people, scored, settings, outside)
    compared = people if used.all() else people.only(used)
    coefficient = settings.get("coefficient") or "pearson"
    names = [one.evaluator for one in scored]
    columns = [one.column(people, settings["level"])[used] for one in scored]
    ceiling = Estimate.undefined(FAILED)
    with side_figure("The noise ceiling"):
        ceiling = _ceiling(compared, settings)
    tested: AllPairs | str = FAILED if len(compared) else NOTHING
    if len(compared):
        with side_figure("The tests between evaluators"):
            tested = tell_apart(
                [np.full(len(column), np.nan) if place in aside else column for place, column in enumerate(columns)],
                names, compared.mean, compared.item, compared.system, settings, cluster=compared.cluster,
            )  # fmt: skip
    tell = progress or (lambda done, total: None)
    tell(len(scored), 2 * len(scored))
    letters = by_place(tested, names)
    rows = []
    signature = ""
    everywhere = find_common_outputs(people, scored, settings, np.ones_like(outside))[0]
    whole_of = people if everywhere.all() else people.only(everywhere)
    population = ""
    for place, (one, column) in enumerate(zip(scored, columns, strict=True)):
        found, note = _correlate(one, people, compared, used, settings)
        signature, population = found.signature, found.population
        whole = None
        if not outside.all():
            with side_figure("The correlations over all outputs, training data included"):
                whole = _correlate(one, people, whole_of, everywhere, settings)[0]
        note = " ".join(part for part in (note, aside.get(place, "")) if part)
        row = {**_row(one, found, note, whole), **no_figures(settings, FAILED)}
        row["n_missing"] = int((~np.isfinite(one.column(people, settings["level"])[outside])).sum())
        with side_figure("The accuracies of pairs"):
            row |= extra_figures(
                column, compared.mean, compared.item, compared.system, settings, cluster=compared.cluster
            )
        row["letters"], row["cluster"] = letters.get(place, ("", None))
        row["corrected"] = None
        if coefficient in row:
            with side_figure("The coefficients divided by the noise ceiling"):
                row["corrected"] = corrected(row[coefficient], ceiling)
        rows.append(row)
        tell(len(scored) + place + 1, 2 * len(scored))
    applied = {row["name"] for row in rows}
    rows += [unapplied_row(name, reason, settings) for name, reason in (unapplied or {}).items() if name not in applied]
    test = described(tested, names)
    n_outside = int(outside.sum())
    n_systems = len(np.unique(compared.system)) if len(compared) else 0
    of_people = f"aspect:{aspect}|ratings:{settings['ratings']}|systems:{settings['systems']}"
    return {
        "kind": "evaluators",
        "people": "ratings",
        "aspect": aspect,
        "level": settings["level"],
        "grouping": settings["grouping"],
        "systems": settings["systems"],
        "references": settings["references"],
        "ratings": settings["ratings"],
        "evaluators": chosen_of(settings),
        "coefficient": coefficient,
        "test": test,
        "ceiling": ceiling.as_dict(),
        "signature": f"{signature or 'level:' + settings['level']}|{tested_part(test)}|{of_people}"
        f"{chosen_part(settings)}",
        "population": population,
        "coverage": coverage_note(settings["level"], len(np.unique(compared.cluster))) if len(compared) else "",
        "n_outputs": len(compared),
        "n_excluded": len(people) - n_outside,
        "n_uncommon": n_outside - len(compared),
        "n_ratings": people.n_ratings,
        "n_raters": people.n_raters,
        "n_systems": n_systems,
        "n_items": len(np.unique(compared.item)),
        "n_simulated": people.n_simulated,
        "counted": people.counted,
        "note": side_note(
            lambda: with_missing(
                _note(settings, len(people), n_outside, n_systems, learned or {})
                or joined(_uncommon(rows, len(compared), n_outside), of_all_outputs(with_wider(rows))),
                settings,
                rows,
            )
        ),
        "rows": sorted(rows, key=by_pearson),
    }


def _ceiling(people: People, settings: Settings) -> Estimate:
    place = people.rating_place
    if not len(place):
        return Estimate.undefined("nothing was rated")
    return ceiling_of(
        people.rating_value, place, people.rating_rater, people.item[place], people.system[place], settings,
        cluster=people.cluster[place],
    )  # fmt: skip


def tested_part(test: Mapping[str, Any]) -> str:
    """The part of the signature that tells the test; its level and grouping stand there anyway."""
    kept = ("test", "coef", "k", "block", "seed", "adjust", "sides", "alpha")
    parts = [part for part in str(test["signature"]).split("|") if part.partition(":")[0] in kept]
    return "|".join(part.replace("seed:", "test-seed:") for part in parts)


def chosen_of(settings: Settings) -> list[str]:
    """The evaluators that a table was asked to compare; empty where it compares all."""
    return [name for name in (settings.get("evaluators") or "").split(",") if name]


def chosen_part(settings: Settings) -> str:
    """The part of the signature that tells them, only where some were chosen."""
    chosen = chosen_of(settings)
    return f"|evaluators:{'+'.join(chosen)}" if chosen else ""


def with_missing(note: str, settings: Settings, rows: Sequence[Mapping[str, Any]]) -> str:
    """The note of a table with those of the chosen evaluators that have no row."""
    there = {row["evaluator"] for row in rows}
    missing = [name for name in chosen_of(settings) if name not in there]
    return " ".join([*filter(None, [note]), f"No scores that fit here: {', '.join(missing)}."]) if missing else note


def nothing_left(n: int, learned: Mapping[str, int], *, what: str = "rated output", of: str = "rated outputs") -> str:
    """That every `what` was learned from by some evaluator; who learned from how many of the `n` things (`of`), those
    with most first; and the ways out."""
    most = sorted(learned.items(), key=lambda found: (-found[1], found[0]))
    named = ", ".join(f"{name} {count:,}" for name, count in most[:MOST_NAMED])
    named += f" and {len(most) - MOST_NAMED:,} more" if len(most) > MOST_NAMED else ""
    return (
        f"There is no {what} that none of these evaluators learned from, so there is nothing left to compare on. "
        + (f"Learned from, of {n:,} {of}: {named}. " if named else "")
        + "Choose others (Evaluators above the table, meta --evaluators), train with folds, delete what learned most, "
        "or have further outputs judged."
    )


def _note(settings: Settings, n: int, n_compared: int, n_systems: int, learned: Mapping[str, int]) -> str:
    if n == 0:
        return "No output of these systems has been rated for this aspect."
    if n_compared == 0:
        return nothing_left(n, learned)
    if settings["level"] == "system" and n_systems < FEW_SYSTEMS:
        return f"With {n_systems} systems the system level ranks nothing: see the intervals."
    return ""


def _uncommon(rows: Sequence[Mapping[str, Any]], n: int, n_rated: int) -> str:
    """That only a part of the outputs was scored by all, and who lacks most."""
    if n == n_rated:
        return ""
    lacking = sorted((row for row in rows if row["n_missing"]), key=lambda row: (-row["n_missing"], row["evaluator"]))
    named = ", ".join(f"{row['evaluator']} {row['n_missing']:,}" for row in lacking[:MOST_NAMED])
    return (
        f"Compared on the {n:,} of {n_rated:,} rated outputs that all evaluators have scored, so that every row has "
        f"the same human scores. Without a score: {named}."
    )


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


def coverage_note(level: str, n_groups: int) -> str:
    """Where intervals of 95 % were found to hold the truth less or more often in simulated data
    (docs/results/intervals.md: of 30 groups .906 to .942, of 100 groups .921 to .946); empty elsewhere."""
    if level == "system":
        return "Intervals of Kendall’s coefficient are cautious: in simulations they hold the truth in .97 to .99."
    if FEW_CLUSTERS <= n_groups <= MOST_SIMULATED:
        fewer = "; fewer groups were not simulated" if n_groups < 30 else ""
        return (
            f"Intervals from {n_groups} groups of items are a little too narrow: in simulations they hold the truth in "
            f".91 to .94 from 30 groups and in .92 to .95 from {MOST_SIMULATED}, instead of .95{fewer}."
        )
    return ""


def by_pearson(row: Mapping[str, Any]) -> tuple[bool, float, str]:
    value = row["pearson"]["value"]
    return (value is None, -(value or 0.0), row["evaluator"])


def _correlate(
    one: Scored, people: People, compared: People, rows: BoolArray, settings: Settings
) -> tuple[Correlations, str]:
    level = settings["level"]
    note = one.note if level == "system" else ""
    if level == "system" and one.has_own and len(compared) < np.isfinite(one.column(people, level)).sum():
        note = f"{note}; {WIDER}"
    bootstrap = settings.get("bootstrap")
    found = correlate(
        one.column(people, level)[rows],
        compared.mean,
        compared.item,
        compared.system,
        settings=CorrelationSettings(
            level=level,
            grouping=settings["grouping"],
            nan_rule=settings.get("undefined") or "drop",
            resampling_unit=bootstrap if level == "system" else None,
        ),
        bootstrap=Bootstrap(cluster=compared.cluster, **draws_of(settings)),
    )
    return found, note


def said_of(one: Scored) -> Table:
    """What a row tells of an evaluator beside its figures."""
    return {
        "evaluator": one.evaluator,
        "name": one.name,
        "kind": one.kind,
        "is_sentinel": one.is_sentinel,
        "score_set": one.score_set,
        "signature": one.signature,
        "short_signature": one.short_signature,
        "scored_at": one.scored_at,
        "n_in_training": one.n_in_training,
    }


def _row(one: Scored, found: Correlations, note: str, whole: Correlations | None) -> Table:
    return {
        **said_of(one),
        **{name: found[name].as_dict() for name in COEFFICIENTS},
        "n": found.n_pairs,
        "n_missing": found.n_missing_metric,
        "n_items": found.n_items,
        "n_systems": found.n_systems,
        "undefined_groups": found.undefined_groups,
        "whole": None if whole is None else _whole(whole),
        "note": note,
    }


def _whole(found: Correlations) -> Table:
    figures: Table = {name: found[name].as_dict() for name in COEFFICIENTS}
    return {**figures, "n": found.n_pairs}


def unapplied_row(name: str, reason: str, settings: Settings) -> Table:
    undefined = {"value": None, "low": None, "high": None, "n": 0, "note": reason}
    return {
        "evaluator": name,
        "name": name,
        "kind": "sentinel",
        "is_sentinel": True,
        "score_set": None,
        "signature": "",
        "short_signature": "",
        "scored_at": None,
        "n_in_training": 0,
        **{coefficient: dict(undefined) for coefficient in COEFFICIENTS},
        **no_figures(settings, reason),
        "letters": "",
        "cluster": None,
        "corrected": dict(undefined),
        "n": 0,
        "n_missing": 0,
        "n_items": 0,
        "n_systems": 0,
        "undefined_groups": {},
        "whole": None,
        "note": reason,
    }


def enhanced_table(
    people: People,
    by_evaluator: Sequence[Mapping[str, Scored]],
    settings: Settings,
    *,
    aspect: str,
    names: Sequence[str],
    outside: BoolArray,
) -> Table:
    """One row per evaluator (each a mapping from reference set to its scores), one cell per set of `names`, differences
    between all pairs of sets. An evaluator's cells are over the rated outputs that it scored with every one of its
    sets, so that they differ in nothing but the references. `settings`: level, grouping, systems, ratings."""
    compared = people if outside.all() else people.only(outside)
    level, grouping = settings["level"], settings["grouping"]
    correlation = CorrelationSettings(level=level, grouping=grouping)
    drawn = Bootstrap(cluster=compared.cluster, **draws_of(settings))
    rows: list[Table] = []
    wider = set()
    for of_sets in by_evaluator:
        columns = {name: of_sets[name].column(people, level)[outside] for name in names if name in of_sets}
        usable = np.all([np.isfinite(column) for column in columns.values()], axis=0)
        cells = {}
        for name in names:
            if name not in columns:
                cells[name] = _absent()
                continue
            metric = np.where(usable, columns[name], np.nan)
            found = correlate(
                metric, compared.mean, compared.item, compared.system, settings=correlation, bootstrap=drawn
            )
            cells[name] = {
                **{coefficient: found[coefficient].as_dict() for coefficient in COEFFICIENTS},
                "n": found.n_pairs,
                "signature": of_sets[name].signature,
                "note": of_sets[name].note if level == "system" and not of_sets[name].has_own else "",
            }
        differences: list[Table] = []
        with side_figure("The differences between reference sets"):
            differences = _differences(columns, usable, compared, correlation, drawn)
        first = of_sets[next(iter(of_sets))]
        own = [one.column(people, level) for one in of_sets.values() if level == "system" and one.has_own]
        if any(usable.sum() < np.isfinite(column).sum() for column in own):
            wider.add(first.evaluator)
        rows.append(
            {
                "evaluator": first.evaluator,
                "name": first.name,
                "cells": cells,
                "differences": differences,
                "n": int((usable & np.isfinite(compared.mean)).sum()),
            }
        )
    baseline = names[0] if names else ""
    tests = [d for row in rows for d in row["differences"] if d["b"] == baseline]
    for found_p, difference in zip(holm([d["p"] for d in tests]), tests, strict=True):
        difference["p_holm"] = found_p
    how = f"boot:inputs|resamples:{drawn.resamples}|seed:{drawn.seed}"
    if level == "system":
        how = f"interval:{NAME}|test:perm-systems"
    return {
        "kind": "enhanced",
        "aspect": aspect,
        "level": level,
        "grouping": grouping,
        "systems": settings["systems"],
        "ratings": settings["ratings"],
        "baseline": baseline,
        "population": OTHER_SYSTEMS if level == "system" else THESE_SYSTEMS,
        "rows": rows,
        "n_outputs": len(compared),
        "n_excluded": len(people) - len(compared),
        "n_ratings": people.n_ratings,
        "n_raters": people.n_raters,
        "n_simulated": people.n_simulated,
        "counted": people.counted,
        "evaluators": chosen_of(settings),
        "note": side_note(
            lambda: with_missing(
                joined(_enhanced_note(names, rows, len(people)), of_all_outputs(sorted(wider))), settings, rows
            )
        ),
        "signature": (
            f"level:{level}|grouping:{grouping}|{how}|aspect:{aspect}"
            f"|ratings:{settings['ratings']}|systems:{settings['systems']}|refs:{'+'.join(names)}"
            f"{chosen_part(settings)}"
        ),
    }


def _differences(
    columns: Mapping[str, FloatArray],
    usable: BoolArray,
    people: People,
    correlation: CorrelationSettings,
    drawn: Bootstrap,
) -> list[Table]:
    """Pearson of `a` minus Pearson of `b` for every two sets, `b` being the one named earlier."""
    found = []
    for b, a in combinations(columns, 2):
        one, two = (np.where(usable, columns[name], np.nan) for name in (a, b))
        difference = compare(one, two, people.mean, people.item, people.system, settings=correlation, bootstrap=drawn)
        found.append({"a": a, "b": b, **difference.as_dict(), "p_holm": None})
    return found


def _absent() -> Table:
    empty = {"value": None, "low": None, "high": None, "n": 0, "note": NOT_SCORED}
    return {**{name: dict(empty) for name in COEFFICIENTS}, "n": 0, "signature": "", "note": NOT_SCORED}


def _enhanced_note(names: Sequence[str], rows: Sequence[Mapping[str, Any]], n_people: int) -> str:
    if n_people == 0:
        return "No output of these systems has been rated for this aspect."
    if len(names) < 2:
        return "Scores were made with fewer than two reference sets. Score with another: the table compares them."
    if all(sum(cell["note"] != NOT_SCORED for cell in row["cells"].values()) < 2 for row in rows):
        return "No evaluator was applied with two of these sets. Score the same one with each of them."
    return ""
