"""How the table of correlations between evaluators is rendered."""

from collections.abc import Mapping
from typing import Any

from evalapp.translation import gettext_noop
from scoring.boards.render.cells import iterate_cells

TITLE = gettext_noop("Metric correlations")
LEAD = gettext_noop("Correlations between the scores of evaluators")
#: Name of a figure in a comparison of two tables.
FIGURE = "pair of evaluators"


def list_names(table: Mapping[str, Any]) -> list[str]:
    return [row["evaluator"] for row in table["rows"]]


def list_figures(table: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every pair of evaluators once; the table has it twice."""
    cells = ((sorted((row, column)), estimate) for row, column, estimate, _ in iterate_cells(table))
    return list({f"{a}, {b}": estimate for (a, b), estimate in cells if estimate is not None}.items())
