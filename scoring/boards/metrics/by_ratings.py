"""Compute the leaderboard of evaluators against human ratings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalapp.side_figures import FAILED, side_figure, side_note, side_value
from evalapp.stats.core.coding import BoolArray
from evalapp.stats.core.common_rows import find_common_rows
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.meta_evaluation import Correlations, CorrelationSettings
from evalapp.stats.correlation.significance import AllPairs
from evalapp.stats.resampling.bootstrap import FEW_CLUSTERS
from evalapp.translation import gettext as _
from scoring.boards.base import Progress, Settings, Table, order_evaluators
from scoring.boards.choices import RIVAL
from scoring.boards.metrics.people import (
    COEFFICIENTS,
    FEW_SYSTEMS,
    LEAST_SHARE,
    MOST_NAMED,
    WIDER,
    People,
    Scored,
    ScoredSets,
    chosen_part,
    describe_scored,
    joined,
    list_chosen,
    no_estimate,
    of_all_outputs,
    with_missing,
    with_wider,
)
from scoring.boards.metrics.significance import (
    by_place,
    compute_ceiling,
    corrected,
    described,
    exceed_rival,
    extra_figures,
    no_figures,
    tell_apart,
)  # fmt: skip

#: Largest number of groups in the simulations of intervals (docs/results/intervals.md); the smallest is 30.
MOST_SIMULATED = 100

NOTHING = "no output can be compared"


def find_common_outputs(
    people: People, scored: Sequence[Scored], settings: Settings, outside: BoolArray
) -> tuple[BoolArray, dict[int, str]]:
    """Return the outputs of the table, among `outside`, and by position why an evaluator is not compared with others.

    At the system level these are the outputs that all evaluators have scored, so that every row has the same human
    means. Evaluators that scored less than half of the outputs of others are excluded unless they were chosen. At other
    levels each row uses all its scored outputs, and tests use the common ones.
    """
    if settings["level"] != "system" or not len(people):
        return outside, {}
    common = find_common_rows(
        [one.column(people, "system") for one in scored], outside, people.system, least=FEW_SYSTEMS,
        share=0.0 if list_chosen(settings) else LEAST_SHARE, what="systems",
    )  # fmt: skip
    return (common.rows if common.used else outside), common.reasons


def evaluators_table(
    people: People, sets: ScoredSets, settings: Settings, *, aspect: str, progress: Progress | None = None
) -> Table:
    """Return settings, counts and one row per evaluator, highest Pearson correlation first.

    All evaluators are compared on the outputs in no training data (at the system level: on those that all have scored,
    see `find_common_outputs`). `settings`: level, grouping, systems, references, ratings, coefficient, test,
    evaluators. `progress` is called with steps done and total; the tests are half of them.
    """
    used, aside = find_common_outputs(people, sets.scored, settings, sets.outside)
    compared, n = people if used.all() else people.only(used), len(sets.scored)
    comparison = _Comparison(people, compared, sets, settings, used, aside)
    report = progress or (lambda done, total: None)
    ceiling = side_value(
        _("The noise ceiling"), lambda: compute_ceiling(compared, settings), Estimate.undefined(FAILED)
    )
    tested = comparison.test_evaluators()
    report(n, 2 * n)
    rows, last = comparison.correlate_evaluators(tested, ceiling, lambda done: report(n + done, 2 * n))
    rows += unapplied_rows(rows, sets, settings)
    test = described(tested, sets.names)
    n_outside, n_systems = int(sets.outside.sum()), len(np.unique(compared.system)) if len(compared) else 0
    options = {name: settings[name] for name in ("level", "grouping", "systems", "references", "ratings")}
    signature = last.signature if last else "level:" + settings["level"]
    population = f"aspect:{aspect}|ratings:{settings['ratings']}|systems:{settings['systems']}"
    return {
        "kind": "evaluators",
        "people": "ratings",
        "aspect": aspect,
        **options,
        "evaluators": list_chosen(settings),
        "coefficient": settings.get("coefficient") or "pearson",
        "test": test,
        "ceiling": ceiling.as_dict(),
        "signature": f"{signature}|{tested_part(test)}|{population}{chosen_part(settings)}",
        "population": last.population if last else "",
        "coverage": coverage_note(settings["level"], len(np.unique(compared.cluster))) if len(compared) else "",
        **people.count(compared),
        "n_excluded": len(people) - n_outside,
        "n_uncommon": n_outside - len(compared),
        "n_systems": n_systems,
        "note": side_note(
            lambda: with_missing(
                _note(settings, len(people), n_outside, n_systems, sets.learned)
                or joined(_uncommon(rows, len(compared), n_outside), of_all_outputs(with_wider(rows))),
                settings,
                rows,
            )
        ),
        "rows": sorted(rows, key=by_pearson),
    }


@dataclass(frozen=True)
class _Comparison:
    """Score sets with the human scores that they are `compared` with, those of the outputs in `used`. `aside` says by
    position why an evaluator is not compared with others."""

    people: People
    compared: People
    sets: ScoredSets
    settings: Settings
    used: BoolArray
    aside: Mapping[int, str]

    def test_evaluators(self) -> AllPairs | str:
        """Return the tests of all pairs of evaluators except those set `aside`, or why there are none."""
        if not len(self.compared):
            return NOTHING
        columns = [one.column(self.people, self.settings["level"])[self.used] for one in self.sets.scored]
        columns = [np.full(len(column), np.nan) if k in self.aside else column for k, column in enumerate(columns)]
        human = (self.compared.mean, self.compared.item, self.compared.system)
        return side_value(
            _("The tests between evaluators"),
            lambda: tell_apart(columns, self.sets.names, human, self.settings, cluster=self.compared.cluster),
            FAILED,
        )

    def correlate_evaluators(
        self, tested: AllPairs | str, ceiling: Estimate, report: Callable[[int], None]
    ) -> tuple[list[Table], Correlations | None]:
        """Return the rows of the evaluators, and the last correlations, which have the signature of all."""
        people, settings, outside = self.people, self.settings, self.sets.outside
        letters = by_place(tested, self.sets.names)
        everywhere = find_common_outputs(people, self.sets.scored, settings, np.ones_like(outside))[0]
        whole_people = people if everywhere.all() else people.only(everywhere)
        rows, correlations = [], None
        for place, one in enumerate(self.sets.scored):
            column = one.column(people, settings["level"])
            correlations, note = _correlate(one, people, self.compared, self.used, settings)
            whole = None
            if not outside.all():
                with side_figure(_("The correlations over all outputs, training data included")):
                    whole = _correlate(one, people, whole_people, everywhere, settings)[0]
            row = _row(one, correlations, " ".join(filter(None, (note, self.aside.get(place, "")))), whole)
            row |= {**no_figures(settings, FAILED), "n_missing": int((~np.isfinite(column[outside])).sum())}
            with side_figure(_("The accuracies of pairs")):
                row |= extra_figures(column[self.used], self.compared, settings)
            row["letters"], row["cluster"] = letters.get(place, ("", None))
            row["corrected"] = None
            if (coefficient := settings.get("coefficient") or "pearson") in row:
                with side_figure(_("The coefficients divided by the noise ceiling")):
                    row["corrected"] = corrected(row[coefficient], ceiling)
            rows.append(row)
            report(place + 1)
        self._compare_with_rival(rows)
        return rows, correlations

    def _compare_with_rival(self, rows: Sequence[Table]) -> None:
        """Add to the row of every trained evaluator by how much it exceeds the best trained ridge, if there is one."""
        coefficient = self.settings.get("coefficient") or "pearson"
        if coefficient not in COEFFICIENTS:
            return
        level, names = self.settings["level"], [one.name if one.kind == "trained" else "" for one in self.sets.scored]
        rivals = [
            place for place, row in enumerate(rows)
            if names[place] == RIVAL and place not in self.aside and row[coefficient]["value"] is not None
        ]  # fmt: skip
        if not rivals:
            return
        best = max(rivals, key=lambda place: rows[place][coefficient]["value"])
        rival = self.sets.scored[best].column(self.people, level)[self.used]
        for place, row in enumerate(rows):
            if names[place] in ("", RIVAL) or row["is_sentinel"] or row[coefficient]["value"] is None:
                continue
            column = self.sets.scored[place].column(self.people, level)[self.used]
            with side_figure(_("The comparison with ridge")):
                found = exceed_rival(column, rival, self.compared, self.settings)
                row["over_ridge"] = {"rival": rows[best]["evaluator"], **found.as_dict()}


def tested_part(test: Mapping[str, Any]) -> str:
    """Return the part of the signature on the test, without level and grouping, which are there already."""
    kept = ("test", "coef", "k", "block", "seed", "adjust", "sides", "alpha")
    parts = [part for part in str(test["signature"]).split("|") if part.partition(":")[0] in kept]
    return "|".join(part.replace("seed:", "test-seed:") for part in parts)


def nothing_left(n: int, learned: Mapping[str, int], *, what: str = "rated output", of: str = "rated outputs") -> str:
    """Return a note that every `what` is in the training data of an evaluator, with the number for each evaluator (of
    `n` `of`), and advice."""
    most = sorted(learned.items(), key=lambda counted: (-counted[1], counted[0]))
    named = ", ".join(f"{name} {count:,}" for name, count in most[:MOST_NAMED])
    named += f" and {len(most) - MOST_NAMED:,} more" if len(most) > MOST_NAMED else ""
    return (
        f"Every {what} is in the training data of an evaluator in this table, so none is left to compare on. "
        + (f"In training data, of {n:,} {of}: {named}. " if named else "")
        + "Choose other evaluators (Evaluators above the table, meta --evaluators), train with folds, delete "
        "evaluators, or have more outputs judged."
    )


def _note(settings: Settings, n: int, n_compared: int, n_systems: int, learned: Mapping[str, int]) -> str:
    if n == 0:
        return "No output of these systems has ratings of this aspect."
    if n_compared == 0:
        return nothing_left(n, learned)
    if settings["level"] == "system" and n_systems < FEW_SYSTEMS:
        return f"With {n_systems} systems, rankings at the system level are not meaningful: see the intervals."
    return ""


def _uncommon(rows: Sequence[Mapping[str, Any]], n: int, n_rated: int) -> str:
    """Return a note if not all outputs are scored by all evaluators."""
    if n == n_rated:
        return ""
    lacking = sorted((row for row in rows if row["n_missing"]), key=lambda row: (-row["n_missing"], row["evaluator"]))
    named = ", ".join(f"{row['evaluator']} {row['n_missing']:,}" for row in lacking[:MOST_NAMED])
    return (
        f"Compared on the {n:,} of {n_rated:,} rated outputs that all evaluators have scored, so that every row has "
        f"the same human scores. Missing scores: {named}."
    )


def coverage_note(level: str, n_groups: int) -> str:
    """Return a note if the coverage of 95 % intervals differs in simulations (docs/results/intervals.md: .906 to .942
    for 30 groups, .921 to .946 for 100), else ""."""
    if level == "system":
        return "Intervals of Kendall’s coefficient are conservative: their coverage in simulations is .97 to .99."
    if FEW_CLUSTERS <= n_groups <= MOST_SIMULATED:
        fewer = "; fewer groups were not simulated" if n_groups < 30 else ""
        return (
            f"Intervals from {n_groups} groups of items are slightly too narrow: their coverage in simulations is "
            f".91 to .94 for 30 groups and .92 to .95 for {MOST_SIMULATED}, instead of .95{fewer}."
        )
    return ""


def by_pearson(row: Mapping[str, Any]) -> tuple[bool, float, str]:
    return order_evaluators(row, row["pearson"])


def _correlate(
    one: Scored, people: People, compared: People, rows: BoolArray, settings: Settings
) -> tuple[Correlations, str]:
    level = settings["level"]
    note = one.note if level == "system" else ""
    if level == "system" and one.has_own and len(compared) < np.isfinite(one.column(people, level)).sum():
        note = f"{note}; {WIDER}"
    correlation = CorrelationSettings(
        level=level,
        grouping=settings["grouping"],
        nan_rule=settings.get("undefined") or "drop",
        resampling_unit=settings.get("bootstrap") if level == "system" else None,
    )
    return compared.correlate(one.column(people, level)[rows], correlation, compared.draw(settings)), note


def describe_evaluator(one: Scored) -> Table:
    """Return the members of a row that describe the evaluator."""
    return {**describe_scored(one), "scored_at": one.scored_at, "n_in_training": one.n_in_training}


def _row(one: Scored, correlations: Correlations, note: str, whole: Correlations | None) -> Table:
    return {
        **describe_evaluator(one),
        **{name: correlations[name].as_dict() for name in COEFFICIENTS},
        "n": correlations.n_pairs,
        "n_missing": correlations.n_missing_metric,
        "n_items": correlations.n_items,
        "n_systems": correlations.n_systems,
        "undefined_groups": correlations.undefined_groups,
        "whole": None if whole is None else _whole(whole),
        "note": note,
    }


def _whole(correlations: Correlations) -> Table:
    figures: Table = {name: correlations[name].as_dict() for name in COEFFICIENTS}
    return {**figures, "n": correlations.n_pairs}


def unapplied_rows(rows: Sequence[Table], sets: ScoredSets, settings: Settings) -> list[Table]:
    """Return rows of the trivial baselines that were not applied, if `rows` has none of them."""
    applied = {row["name"] for row in rows}
    return [unapplied_row(name, reason, settings) for name, reason in sets.unapplied.items() if name not in applied]


def unapplied_row(name: str, reason: str, settings: Settings) -> Table:
    """Return the row of a trivial baseline that was not applied."""
    return {
        **describe_evaluator(Scored(name, name, "sentinel", signature="", metric=np.zeros(0))),
        **{coefficient: no_estimate(reason) for coefficient in COEFFICIENTS},
        **no_figures(settings, reason),
        "letters": "",
        "cluster": None,
        "corrected": no_estimate(reason),
        **dict.fromkeys(("n", "n_missing", "n_items", "n_systems"), 0),
        "undefined_groups": {},
        "whole": None,
        "note": reason,
    }
