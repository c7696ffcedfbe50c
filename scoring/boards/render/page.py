"""Positions on the small axes of pages, and p-values of pairs."""

from collections.abc import Mapping
from typing import Any

from evalapp.side_figures import side_figure
from evalapp.translation import gettext as _

#: Maximum number of evaluators with p-values for each pair.
MOST_PAIRS = 12


def place(row: Mapping[str, Any]) -> str:
    """Format a rank as `1`, `2–4` for a range, or a dash."""
    if row["rank"] is None:
        return "-"
    low, high = row["rank_low"], row["rank_high"]
    return str(low) if low == high else f"{low}–{high}"


def span_values(rows: list[dict[str, Any]], scale: list[float | None]) -> tuple[float, float]:
    """Return the range of an axis: all values with a margin, within the scale if there is one."""
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
    """Return the range of an axis with all intervals and 0, within -1 and 1."""
    values = [row[coefficient][end] for row in rows for end in ("value", "low", "high")]
    result = [0.0, *(value for value in values if value is not None)]
    air = 0.05 * ((max(result) - min(result)) or 1.0)
    return max(-1.0, min(result) - air), min(1.0, max(result) + air)


def span_shares(rows: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """Return the range of an axis with all intervals of shares and a margin, within 0 and 1."""
    result = [row[key][end] for row in rows for end in ("value", "low", "high") if row[key][end] is not None]
    if not result:
        return 0.0, 1.0
    air = 0.05 * ((max(result) - min(result)) or 1.0)
    return max(0.0, min(result) - air), min(1.0, max(result) + air)


def place_rows(
    rows: list[dict[str, Any]], span: tuple[float, float], part: str = "", *, signed: bool = True
) -> list[dict[str, Any]]:
    """Add to rows the positions of dot and interval on an axis 200 wide, and the displayed rank."""
    low, high = span

    def at(value: float | None) -> float | None:
        return None if value is None else round(4 + 192 * (max(value, low) - low) / ((high - low) or 1.0), 1)

    result = []
    number = 0
    for row in rows:
        estimate = row[part] if part else row
        number += estimate["value"] is not None
        drawn = {"x": at(estimate["value"]), "x_low": at(estimate["low"]), "x_high": at(estimate["high"])}
        zero = at(0.0) if part and signed else None
        shown = place(row) if "rank" in row else str(number) if estimate["value"] is not None else "-"
        result.append({**row, "estimate": estimate, "drawn": drawn, "zero": zero, "place": shown})
    return result


def list_p_values(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the p-values of all pairs, one row per evaluator; [] for many evaluators."""
    with side_figure(_("The p-values of all pairs")):
        names = table["test"]["names"]
        if 2 <= len(names) <= MOST_PAIRS:
            return [
                # Versions before 0.2.0 stored 1 for pairs that are not tested.
                {"name": name, "cells": [{"p": p, "is_tested": column > row} for column, p in enumerate(cells)]}
                for row, (name, cells) in enumerate(zip(names, table["test"]["p_holm"], strict=True))
            ]
    return []
