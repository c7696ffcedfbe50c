"""What the renderers show of the board of evaluators against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.boards.render.cells import build_context, cells_of, draw, list_cells, write_latex, write_lines

__all__ = ["build_context", "draw", "list_cells", "write_latex", "write_lines"]

TITLE = "Against each other"
LEAD = "Which evaluators say the same as which others"
#: The choices above the table.
FIELDS = ["aspect", "level", "coefficient", "systems", "references"]
#: What a figure of the table is called where two tables are compared.
FIGURE = "pair of evaluators"


def list_names(table: Mapping[str, Any]) -> list[str]:
    """The evaluators."""
    return [row["evaluator"] for row in table["rows"]]


def list_figures(table: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Every pair of evaluators once; the table has it twice."""
    cells = ((sorted((row, column)), estimate) for row, column, estimate, _ in cells_of(table))
    return list({f"{a}, {b}": estimate for (a, b), estimate in cells if estimate is not None}.items())
