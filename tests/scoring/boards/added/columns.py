"""What the renderers show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.boards.render.cells import (
    TEMPLATE,
    build_context,
    draw,
    list_cells,
    list_figures,
    write_latex,
    write_lines,
)

__all__ = ["TEMPLATE", "build_context", "draw", "list_cells", "list_figures", "write_latex", "write_lines"]

TITLE = "By number of scores"
LEAD = "Share of the rated outputs that each evaluator has scored"
FIGURE = "evaluator"


def list_names(table: Mapping[str, Any]) -> list[str]:
    return ["scored"]
