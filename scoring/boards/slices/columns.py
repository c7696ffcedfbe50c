"""What the renderers show of the board by part of the items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.boards.render.cells import build_context, draw, list_cells, list_figures, write_latex, write_lines

__all__ = ["build_context", "draw", "list_cells", "list_figures", "write_latex", "write_lines"]

TITLE = "By part of the items"
LEAD = "How well each evaluator follows people in every part of the items"
#: The choices above the table.
FIELDS = ["key", "aspect", "coefficient", "systems", "ratings", "references", "filter"]
#: What a figure of the table is called where two tables are compared.
FIGURE = "evaluator and part"
#: Columns of a CSV file beside those of the estimate, which is the shrunken one.
MORE = ["raw", "raw_low", "raw_high", "weight"]


def list_names(table: Mapping[str, Any]) -> list[str]:
    """The parts."""
    return [part["name"] for part in table["parts"]]


def pick_estimate(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """The estimate that a board shows of a part."""
    estimate: Mapping[str, Any] = cell["shrunken"]
    return estimate


def list_more(cell: Mapping[str, Any]) -> list[Any]:
    """The columns `MORE`."""
    return [*(cell["raw"][end] for end in ("value", "low", "high")), cell["weight"]]
