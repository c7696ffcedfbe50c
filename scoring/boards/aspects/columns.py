"""What the renderers show of the board of evaluators by aspect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.boards.render.cells import build_context, draw, list_cells, list_figures, write_latex, write_lines

__all__ = ["build_context", "draw", "list_cells", "list_figures", "write_latex", "write_lines"]

TITLE = "By aspect"
LEAD = "How well each evaluator follows people in every aspect"
#: The choices above the table.
FIELDS = ["level", "grouping", "systems", "coefficient", "ratings", "references", "filter"]
#: What a figure of the table is called where two tables are compared.
FIGURE = "evaluator and aspect"


def list_names(table: Mapping[str, Any]) -> list[str]:
    """The aspects."""
    return [aspect["aspect"] for aspect in table["aspects"]]
