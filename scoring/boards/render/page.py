"""Positions on the small axes of pages, and p-values of pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalapp.plot_style import name_ticks, round_ticks
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


@dataclass(frozen=True)
class Scale:
    """The axis of a column of intervals, with positions in per cent of its width; `reference` is a line through all
    rows, such as 0."""

    low: float
    high: float
    reference: float | None = None

    def place(self, value: float | None) -> float | None:
        if value is None:
            return None
        share = (min(max(value, self.low), self.high) - self.low) / ((self.high - self.low) or 1.0)
        return round(4 + 92 * share, 1)

    @property
    def line(self) -> float | None:
        return self.place(self.reference)

    @property
    def ticks(self) -> list[dict[str, Any]]:
        """Round values with their positions; the reference is among them."""
        known = [tick for tick in round_ticks(self.low, self.high, 7) if self.low <= tick <= self.high]
        texts = name_ticks(known) if len(known) > 1 else [f"{tick:g}" for tick in known]
        return [{"x": self.place(tick), "text": text} for tick, text in zip(known, texts, strict=True)]


def scale_values(rows: list[dict[str, Any]], limits: list[float | None]) -> Scale:
    """Return an axis of all values with a margin, within the limits if there are some."""
    values = [row[end] for row in rows for end in ("value", "low", "high") if row[end] is not None]
    if not values:
        return Scale(0.0, 1.0)
    low, high = min(values), max(values)
    air = (high - low) * 0.06 or 0.5
    low, high = low - air, high + air
    if limits[0] is not None and limits[1] is not None:
        low, high = max(low, min(limits[0], min(values))), min(high, max(limits[1], max(values)))
    return Scale(low, high)


def scale_around_zero(rows: list[dict[str, Any]], coefficient: str) -> Scale:
    """Return an axis with all intervals and 0, within -1 and 1."""
    values = [row[coefficient][end] for row in rows for end in ("value", "low", "high")]
    result = [0.0, *(value for value in values if value is not None)]
    air = 0.05 * ((max(result) - min(result)) or 1.0)
    return Scale(max(-1.0, min(result) - air), min(1.0, max(result) + air), 0.0)


def scale_shares(rows: list[dict[str, Any]], key: str, reference: float | None = None) -> Scale:
    """Return an axis with all intervals of shares, the reference and a margin, within 0 and 1."""
    result = [row[key][end] for row in rows for end in ("value", "low", "high") if row[key][end] is not None]
    if not result:
        return Scale(0.0, 1.0, reference)
    result += [] if reference is None else [reference]
    air = 0.05 * ((max(result) - min(result)) or 1.0)
    return Scale(max(0.0, min(result) - air), min(1.0, max(result) + air), reference)


def place_rows(rows: list[dict[str, Any]], scale: Scale, part: str = "") -> list[dict[str, Any]]:
    """Add to rows the positions of dot and interval on the scale, and the displayed rank."""
    result = []
    number = 0
    for row in rows:
        estimate = row[part] if part else row
        number += estimate["value"] is not None
        ends = {"x": "value", "x_low": "low", "x_high": "high"}
        drawn = {name: scale.place(estimate[end]) for name, end in ends.items()}
        shown = place(row) if "rank" in row else str(number) if estimate["value"] is not None else "-"
        result.append({**row, "estimate": estimate, "drawn": drawn, "place": shown})
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
