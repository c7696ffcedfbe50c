"""Plots of boards: SVG for pages, PDF for papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.boards.registry import get_board
from scoring.plots.drawing import Plot, Theme


def draw_board(table: Mapping[str, Any], query: Any, project: str, theme: Theme) -> Plot:
    """Return the plot of a board; the title contains the name of the `project`."""
    plot: Plot = get_board(table["kind"]).get_renderer("draw")(table, query, project, theme)
    return plot
