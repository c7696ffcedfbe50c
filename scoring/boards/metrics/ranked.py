"""Compute the leaderboard of evaluators against a ranking of systems from comparisons (Turing M1, win rate, models)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalapp.side_figures import FAILED, side_figure, side_note, side_value
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, snap
from evalapp.stats.core.common_rows import find_common_rows
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.exchanges import few_systems
from evalapp.stats.correlation.meta_evaluation import OTHER_SYSTEMS, CorrelationSettings
from evalapp.stats.correlation.paired import compare
from evalapp.stats.correlation.ranking_correlation import correlate_with_ranking
from evalapp.stats.correlation.system_pairs import system_pairwise_accuracy
from evalapp.stats.ranking.systems import Ranking
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE
from evalapp.translation import gettext as _
from scoring.boards.base import Settings, Table
from scoring.boards.choices import RIVAL
from scoring.boards.data.columns import Comparisons, Units, persons, without_repeats
from scoring.boards.metrics.by_ratings import (
    NOTHING,
    by_pearson,
    describe_evaluator,
    nothing_left,
    tested_part,
    unapplied_rows,
)
from scoring.boards.metrics.people import (
    COEFFICIENTS,
    FEW_SYSTEMS,
    WIDER,
    Scored,
    ScoredSets,
    chosen_part,
    joined,
    list_chosen,
    of_all_outputs,
    with_missing,
    with_wider,
)
from scoring.boards.metrics.significance import by_place, described, tell_apart, usable_columns
from scoring.boards.systems.rankings import compared_within, rank_systems

#: Methods that rank systems from comparisons.
RANKINGS = ("m1", "win-rate", "bradley-terry", "davidson", "rao-kupper", "glicko2")
NO_CEILING = "not defined for rankings from comparisons"


class Compared:
    """The compared outputs of a subset of systems, sorted by item and system; `output` identifies an output in the
    source, `comparisons` are those of its outputs."""

    def __init__(self, comparisons: Comparisons, *, subset: str, turing: bool) -> None:
        if comparisons.output_a is None or comparisons.output_b is None:
            raise ValueError("comparisons without numbers of their outputs cannot be matched with scores")
        self.counted = without_repeats(int(comparisons.repeat.sum()))
        kept = compared_within(comparisons, subset, turing=turing)
        self.comparisons, self.turing = kept, turing
        self.units: Units = kept.units
        sides = [(kept.output_a, kept.system_a)] if turing else [
            (kept.output_a, kept.system_a), (kept.output_b, kept.system_b)
        ]  # fmt: skip
        output = np.concatenate([_column(side) for side, _ in sides])
        system = np.concatenate([side for _, side in sides])
        item = np.concatenate([kept.item] * len(sides))
        _, first = np.unique(output, return_index=True)
        first = first[np.lexsort((system[first], item[first]))]
        self.output: IntArray = output[first]
        self.item, self.system = item[first], system[first]

    def __len__(self) -> int:
        return len(self.output)

    def outside(self, rows: BoolArray) -> Comparisons:
        """Return the comparisons whose outputs are all in `rows`."""
        known = self.output[rows]
        kept = np.isin(_column(self.comparisons.output_a), known)
        if not self.turing:
            kept &= np.isin(_column(self.comparisons.output_b), known)
        return self.comparisons.only(kept)


def _column(column: IntArray | None) -> IntArray:
    return np.zeros(0, dtype=np.int64) if column is None else column


@dataclass(frozen=True)
class _Systems:
    """The codes and values of ranked systems, best first."""

    codes: IntArray
    value: FloatArray
    ranking: Ranking

    @classmethod
    def of(cls, ranking: Ranking) -> _Systems:
        rows = [row for row in ranking.systems if row.estimate.is_defined]
        codes = np.array([int(row.system) for row in rows], dtype=np.int64)
        return cls(codes, np.array([row.estimate.value for row in rows], dtype=np.float64), ranking)


def evaluators_by_ranking(compared: Compared, sets: ScoredSets, settings: Settings, *, aspect: str) -> Table:
    """Return the table of `evaluators_table` with human comparisons instead of ratings, with one value per system.

    The score of a system is the mean over its compared outputs, or the evaluator's own value of the system. Comparisons
    with outputs in training data do not count. `settings`: people (one of `RANKINGS`), systems,
    references, coefficient, test, evaluators. Intervals are those of `correlate_with_ranking`, for systems as a sample
    (for pairwise accuracy a bootstrap over systems); tests exchange standardised scores of systems.
    """
    kept = compared.comparisons if sets.outside.all() else compared.outside(sets.outside)
    ranking = rank_systems(kept, {**settings, "method": settings["people"]})
    systems = _Systems.of(ranking)
    # A comparison is dropped with both outputs, so an output outside training data may be left in none.
    used = sets.outside & _used(compared, kept)
    rows, test = _compute_rows(compared, sets.scored, settings, systems, used)
    rows += [{**_without_spa(row), "values": []} for row in unapplied_rows(rows, sets, {"level": "system"})]
    parts = [f"level:system|interval:fisher-z|conf:{DEFAULT_CONFIDENCE:g}", tested_part(test), f"aspect:{aspect}"]
    parts += [f"people:{settings['people']}|systems:{settings['systems']}", ranking.signature]
    return {
        "kind": "evaluators",
        "people": settings["people"],
        "aspect": aspect,
        "level": "system",
        "grouping": "none",
        "systems": settings["systems"],
        "references": settings["references"],
        "ratings": "",
        "evaluators": list_chosen(settings),
        "coefficient": settings.get("coefficient") or "pearson",
        "test": test,
        "ceiling": Estimate.undefined(NO_CEILING).as_dict(),
        "signature": "|".join(parts) + chosen_part(settings),
        "n_outputs": int(used.sum()),
        "n_excluded": int(len(compared) - used.sum()),
        "n_ratings": len(kept),
        "n_raters": len(np.unique(persons(kept.rater, kept.raters))),
        "n_systems": len(systems.codes),
        "n_items": len(np.unique(kept.item)),
        "n_simulated": int(kept.simulated.sum()),
        "counted": compared.counted,
        "note": side_note(
            lambda: with_missing(
                joined(_note(compared, kept, systems, aspect, sets.learned), of_all_outputs(with_wider(rows))),
                settings,
                rows,
            )
        ),
        "population": OTHER_SYSTEMS,
        "scores": [
            {"label": compared.units.units[int(row.system)].label, **row.estimate.as_dict()} for row in ranking.systems
        ],
        "rows": sorted(rows, key=by_pearson),
    }


def _compute_rows(
    compared: Compared, scored: Sequence[Scored], settings: Settings, systems: _Systems, used: BoolArray
) -> tuple[list[Table], Table]:
    """Return the rows of the evaluators and the tests between them."""
    columns = [_by_system(one, compared, used, systems.codes) for one in scored]
    names = [one.evaluator for one in scored]
    common = find_common_rows(columns, np.ones(len(systems.codes), dtype=bool), least=FEW_SYSTEMS)
    n = common.rows.sum() if common.used else max((np.isfinite(column).sum() for column in columns), default=0)
    tested: Any = side_value(
        _("The tests between evaluators"), lambda: _tell_apart(columns, names, systems, settings, int(n)), FAILED
    )
    letters = by_place(tested, names)
    rows = []
    for place, (one, column) in enumerate(zip(scored, columns, strict=True)):
        on = common.rows if place in common.used else np.ones_like(common.rows)
        row = _row(one, column, on, compared, used, systems)
        row["letters"], row["cluster"] = letters.get(place, ("", None))
        rows.append(row)
    _compare_with_rival(rows, scored, columns, systems, settings)
    # Version 0.1.0 tested systems as well.
    test = described(tested, names, changed="")
    for what in ("groups of items", "items", "outputs"):
        test["note"] = test["note"].replace(f" {what}", " systems")
    test["signature"] = test["signature"].replace("level:segment", "level:system")
    if test["names"]:
        test["population"] = OTHER_SYSTEMS
    return rows, test


def _compare_with_rival(
    rows: Sequence[Table],
    scored: Sequence[Scored],
    columns: Sequence[FloatArray],
    systems: _Systems,
    settings: Settings,
) -> None:
    """Add to the row of every trained evaluator by how much it exceeds the best trained ridge, if there is one, with an
    interval for systems as a sample."""
    coefficient: Any = settings.get("coefficient") or "pearson"
    trained = [one.name if one.kind == "trained" and not one.is_sentinel else "" for one in scored]
    defined = [coefficient in COEFFICIENTS and row[coefficient]["value"] is not None for row in rows]
    rivals = [place for place, name in enumerate(trained) if name == RIVAL and defined[place]]
    if not rivals:
        return
    best = max(rivals, key=lambda place: rows[place][coefficient]["value"])
    each = np.arange(len(systems.codes))
    over_systems = CorrelationSettings(level="system", coefficients=(coefficient,))
    for place, row in enumerate(rows):
        if defined[place] and trained[place] not in ("", RIVAL):
            with side_figure(_("The comparison with ridge")):
                found = compare(columns[place], columns[best], systems.value, each, each, settings=over_systems)
                row["over_ridge"] = {"rival": rows[best]["evaluator"], **found.estimate.as_dict()}


def _used(compared: Compared, kept: Comparisons) -> BoolArray:
    sides = [_column(kept.output_a)] + ([] if compared.turing else [_column(kept.output_b)])
    return np.isin(compared.output, np.concatenate(sides))


def _by_system(one: Scored, compared: Compared, used: BoolArray, codes: IntArray) -> FloatArray:
    """Return the evaluator's value of each ranked system, nan without one, rounded to keep ties."""
    if one.has_own:
        return one.of_units(compared.units)[codes] if len(codes) else np.zeros(0)
    rows = used & np.isfinite(one.metric)
    n = len(compared.units.units)
    counts = np.bincount(compared.system[rows], minlength=n)
    sums = np.bincount(compared.system[rows], weights=one.metric[rows], minlength=n)
    means = np.divide(sums, counts, out=np.full(n, np.nan), where=counts > 0)
    known = np.isfinite(means)
    means[known] = snap(means[known])
    return means[codes]


def _tell_apart(
    columns: Sequence[FloatArray], names: Sequence[str], systems: _Systems, settings: Settings, n: int
) -> Any:
    """Test evaluators on the `n` systems for which all usable ones have a value."""
    if not len(systems.codes):
        return NOTHING
    test = settings.get("test") or "permutation"
    usable = usable_columns(columns, names)
    if len(usable) > 1 and n < FEW_SYSTEMS and test != "none":
        return f"{few_systems(n)} for a test"
    each = np.arange(len(systems.codes))
    # One row per system, so systems are exchanged or resampled.
    level = "system" if test == "permutation" else "segment"
    of_systems = {**settings, "level": level, "grouping": "none"}
    return tell_apart(columns, names, (systems.value, each, each), of_systems, cluster=None)


def _row(
    one: Scored, column: FloatArray, on: BoolArray, compared: Compared, used: BoolArray, systems: _Systems
) -> Table:
    """Return the figures over the systems `on`, which are the same for all comparable evaluators."""
    values, column = column, np.where(on, column, np.nan)
    scores = {int(code): float(value) for code, value in zip(systems.codes, column, strict=True)}
    figures = {name: correlate_with_ranking(scores, systems.ranking, coefficient=name) for name in COEFFICIENTS}
    both = np.isfinite(column)
    pa = side_value(
        _("The pairwise accuracy of systems"),
        lambda: system_pairwise_accuracy(column[both], systems.value[both], systems.codes[both]),
        Estimate.undefined(FAILED),
    )
    wider = f"; {WIDER}" if one.has_own and used.sum() < len(compared) else ""
    missing = 0 if one.has_own else int((used & ~np.isfinite(one.metric)).sum())
    return {
        **describe_evaluator(one),
        **{name: estimate.as_dict() for name, estimate in figures.items()},
        "pa": pa.as_dict(),
        "n": int(both.sum()),
        "n_missing": missing,
        "n_items": len(np.unique(compared.item[used])),
        "n_systems": int(both.sum()),
        "undefined_groups": {},
        "corrected": None,
        "whole": None,
        "note": f"{one.note}{wider}",
        "values": [None if np.isnan(value) else float(value) for value in values],
    }


def _without_spa(row: Table) -> Table:
    return {name: value for name, value in row.items() if name != "spa"}


def _note(compared: Compared, kept: Comparisons, systems: _Systems, aspect: str, learned: Mapping[str, int]) -> str:
    if not len(compared):
        what = "compared with a reference (Turing M1)" if compared.turing else "compared with another"
        return f"No output of these systems has been {what} for {aspect}."
    if not len(kept):
        return nothing_left(len(compared), learned, what="comparison", of="compared outputs")
    # First, because the figures use fewer systems than were compared.
    links = str((systems.ranking.extras.get("connectivity") or {}).get("note") or "")
    notes = [f"{links[0].upper()}{links[1:]}; figures are over the {len(systems.codes)} with a value."] if links else []
    if len(systems.codes) < FEW_SYSTEMS:
        notes.append(
            f"With {len(systems.codes)} systems, rankings at the system level are not meaningful: see the intervals."
        )
    return " ".join(note for note in notes if note)
