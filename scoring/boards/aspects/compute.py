"""Compute the leaderboard by aspect from the main leaderboard of each aspect."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalapp.stats.correlation.meta_evaluation import OTHER_SYSTEMS, THESE_SYSTEMS
from evalapp.stats.resampling.jackknife import NAME
from evalapp.versions import split_version
from scoring.boards.aspects.query import AspectsQuery
from scoring.boards.base import Data, Progress, Settings, Table
from scoring.boards.choices import FIGURES
from scoring.boards.metrics.people import list_chosen, no_estimate, of_all_outputs, sign_table, with_missing, with_wider

#: Members of the table of each aspect that are copied.
OF_ASPECT = ("aspect", "n_outputs", "n_excluded", "n_ratings", "n_raters", "ceiling", "signature")


def compute(data: Data, query: AspectsQuery, progress: Progress | None = None) -> Table:
    """Return one figure for every evaluator and aspect."""
    figure = FIGURES.get(query.coefficient, query.coefficient)
    return aspects_table(data.compute_by_aspect(query, progress), {**query.params, "figure": figure, **data.draws})


def aspects_table(tables: Sequence[Mapping[str, Any]], settings: Settings) -> Table:
    """Return one figure with its interval for every evaluator and aspect. `settings`: figure (its name in a row),
    coefficient, level, grouping, systems, references, ratings."""
    figure = settings["figure"]
    if any(figure not in row for table in tables for row in table["rows"]):
        raise ValueError(f"tables at the level {settings['level']} have no figure “{figure}”")
    by_name: dict[str, Table] = {}
    wider = of_all_outputs(with_wider([row for table in tables for row in table["rows"]]))
    for place, table in enumerate(tables):
        for row in table["rows"]:
            kept = ("evaluator", "name", "kind", "is_sentinel", "signature", "short_signature", "score_set")
            mine = by_name.setdefault(
                row["evaluator"], {name: row[name] for name in kept} | {"cells": [None] * len(tables)}
            )
            mine["cells"][place] = {name: row[figure][name] for name in ("value", "low", "high", "n", "note")} | {
                "letters": row["letters"]
            }
    rows = list(by_name.values())
    for row in rows:
        row["cells"] = [cell or {**no_estimate("not scored for this aspect"), "letters": ""} for cell in row["cells"]]
    return {
        "kind": "aspects",
        "aspect": "",
        "figure": figure,
        **{name: settings[name] for name in ("coefficient", "level", "grouping", "systems", "references", "ratings")},
        "signature": sign_table(
            settings, "all", f"aspects|level:{settings['level']}|grouping:{settings['grouping']}", _drawn(settings)
        ),
        "population": OTHER_SYSTEMS if settings["level"] == "system" else THESE_SYSTEMS,
        "aspects": [
            # Only the signature of the whole table ends with the version.
            {name: table[name] for name in OF_ASPECT} | {"signature": split_version(table["signature"])[0]}
            for table in tables
        ],
        "n_excluded": sum(table["n_excluded"] for table in tables),
        "n_simulated": sum(table["n_simulated"] for table in tables),
        "counted": [f"{table['aspect']}: {sentence}" for table in tables for sentence in table.get("counted", ())],
        "n_items": max((table["n_items"] for table in tables), default=0),
        "evaluators": list_chosen(settings),
        "note": with_missing(wider if tables else "No aspect has ratings.", settings, rows),
        "rows": sorted(rows, key=lambda row: (-_mean(row["cells"]), row["evaluator"])),
    }


def _mean(cells: Sequence[Mapping[str, Any]]) -> float:
    values = [cell["value"] for cell in cells if cell["value"] is not None]
    return sum(values) / len(values) if values else -2.0


def _drawn(settings: Settings) -> str:
    """Return how `correlate` computes intervals at this level."""
    return f"interval:{NAME}" if settings["level"] == "system" else "boot:inputs"
