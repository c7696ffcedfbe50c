"""What templates draw boards from: the places of dots and lines on small axes, and p-values of pairs. Templates show
the rest of a table as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalapp.side_figures import side_figure
from scoring.boards.render.figures import place

#: Evaluators whose p-values are shown pair by pair.
MOST_PAIRS = 12


def span_values(rows: list[dict[str, Any]], scale: list[float | None]) -> tuple[float, float]:
    """What the little axes span: the figures with some air, within the scale where there is one."""
    values = [row[end] for row in rows for end in ("value", "low", "high") if row[end] is not None]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    air = (high - low) * 0.06 or 0.5
    low, high = low - air, high + air
    if scale[0] is not None and scale[1] is not None:
        low, high = max(low, min(scale[0], min(values))), min(high, max(scale[1], max(values)))
    return low, high


def span_around_zero(rows: list[dict[str, Any]], coefficient: str) -> tuple[float, float]:
    """All intervals and the 0, within -1 and 1."""
    values = [row[coefficient][end] for row in rows for end in ("value", "low", "high")]
    found = [0.0, *(value for value in values if value is not None)]
    air = 0.05 * ((max(found) - min(found)) or 1.0)
    return max(-1.0, min(found) - air), min(1.0, max(found) + air)


def span_shares(rows: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """All intervals of shares with some air, within 0 and 1."""
    found = [row[key][end] for row in rows for end in ("value", "low", "high") if row[key][end] is not None]
    if not found:
        return 0.0, 1.0
    air = 0.05 * ((max(found) - min(found)) or 1.0)
    return max(0.0, min(found) - air), min(1.0, max(found) + air)


def place_rows(
    rows: list[dict[str, Any]], span: tuple[float, float], part: str = "", *, signed: bool = True
) -> list[dict[str, Any]]:
    """Rows with the places of dot and line on an axis 200 wide, and what stands in the column of ranks."""
    low, high = span

    def at(value: float | None) -> float | None:
        return None if value is None else round(4 + 192 * (value - low) / ((high - low) or 1.0), 1)

    found = []
    number = 0
    for row in rows:
        estimate = row[part] if part else row
        number += estimate["value"] is not None
        drawn = {"x": at(estimate["value"]), "x_low": at(estimate["low"]), "x_high": at(estimate["high"])}
        zero = at(0.0) if part and signed else None
        shown = place(row) if "rank" in row else str(number) if estimate["value"] is not None else "-"
        found.append({**row, "estimate": estimate, "drawn": drawn, "zero": zero, "place": shown})
    return found


def list_p_values(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """p-values of all pairs, a row for each evaluator; of very many none, they stand in the JSON."""
    with side_figure("The p-values of all pairs"):
        names = table["test"]["names"]
        if 2 <= len(names) <= MOST_PAIRS:
            return [
                # There is no test of the worse one against the better one; versions before 0.2.0 stored 1 there.
                {"name": name, "cells": [{"p": p, "is_tested": column > row} for column, p in enumerate(cells)]}
                for row, (name, cells) in enumerate(zip(names, table["test"]["p_holm"], strict=True))
            ]
    return []
