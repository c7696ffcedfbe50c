"""Tables of boards on pages. Readers sort them by any column, choose columns, and show intervals, all by the address;
intervals are drawn on an axis with round ticks."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlencode

from evalapp.names import natural_key
from evalapp.plot_style import name_ticks, round_ticks
from evalapp.side_figures import side_figure
from evalapp.translation import gettext as _

Row = Mapping[str, Any]
#: Parameter of an address -> its values.
Given = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Column:
    """A column of a table; `value` gives what its rows sort by. Without it the column cannot be sorted."""

    name: str
    label: str
    value: Callable[[Any], Any] | None = None
    is_number: bool = True
    #: Whether the first sort is ascending. The default is descending for numbers, ascending for texts.
    is_ascending: bool | None = None
    #: Text shown on hover, small text below the label, and an address for it.
    title: str = ""
    small: str = ""
    url: str = ""
    badge: str = ""
    css: str = ""
    #: Readers cannot hide the column.
    is_kept: bool = False
    #: Shown with intervals, and only then.
    is_detail: bool = False
    #: Shown once above the table if all rows have the same value.
    is_folded: bool = False
    #: It draws intervals, with the scale of the table in the heading.
    is_drawn: bool = False
    #: The label is only read aloud.
    is_silent: bool = False


@dataclass(frozen=True)
class Head:
    """A heading; `href` sorts by its column, or reverses the order."""

    column: Column
    id: str
    href: str = ""
    #: `ascending` or `descending` if the table is sorted by it.
    order: str = ""

    @property
    def css(self) -> str:
        kind = "drawn" if self.column.is_drawn else "num" if self.column.is_number else ""
        return " ".join(part for part in (kind, self.column.css) if part)


@dataclass(frozen=True)
class Grid:
    """A table as its reader wants to see it."""

    rows: list[Any]
    heads: list[Head]
    #: Column -> whether it is shown.
    shown: dict[str, bool]
    #: Columns with one value for all rows: (column, value).
    same: list[tuple[Column, Any]] = field(default_factory=list)
    intervals: bool = False
    #: Whether a reader has sorted the table.
    is_sorted: bool = False
    #: Address that shows or hides the intervals; empty if there are none.
    toggle: str = ""
    #: Columns that readers can hide, and whether they are shown.
    choices: list[tuple[Column, bool]] = field(default_factory=list)
    #: Name of the parameter of columns, its constant values, and the address without it.
    parameter: str = "columns"
    kept: list[str] = field(default_factory=list)
    reset: str = ""
    #: Parameters of the address that a form for columns, and a form for everything else, send along.
    others: list[tuple[str, str]] = field(default_factory=list)
    carried: list[tuple[str, str]] = field(default_factory=list)
    #: Further tables of the page by name.
    further: dict[str, "Grid"] = field(default_factory=dict)


def measure_width(estimate: Row) -> float | None:
    """Return the width of an interval, by which columns of drawn intervals sort."""
    return None if estimate["low"] is None else float(estimate["high"] - estimate["low"])


def is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and not math.isfinite(value))


def sort_rows(rows: Sequence[Any], value: Callable[[Any], Any], *, descending: bool) -> list[Any]:
    """Return the rows in a stable order with missing values last; texts are in natural order (q2 before q10)."""

    def key(row: Any) -> tuple[bool, Any]:
        found = value(row)
        return isinstance(found, str), natural_key(found) if isinstance(found, str) else found

    known = [row for row in rows if not is_missing(value(row))]
    missing = [row for row in rows if is_missing(value(row))]
    return sorted(known, key=key, reverse=descending) + missing


def arrange(
    columns: Sequence[Column],
    rows: Sequence[Any],
    given: Given,
    *,
    name: str = "",
    default: str = "",
    has_intervals: bool = False,
) -> Grid:
    """Return the table for the parameters of an address: `sort` (`n`, or `-n` for descending), `columns` and
    `intervals`.

    `default` is the order of `rows`. A second table on a page has a `name`, which its parameters begin with.
    """
    prefix = f"{name}." if name else ""
    by, hide = f"{prefix}sort", f"{prefix}columns"
    pairs = [(key, value) for key, values in given.items() for value in values]
    intervals = "1" in given.get("intervals", ())
    wanted = set(given.get(hide, ())) & {column.name for column in columns}
    same = [(column, value) for column in columns for value in _only_value(column, rows)]
    folded = {column.name for column, _value in same}
    shown = {
        column.name: intervals
        if column.is_detail
        else column.is_kept or column.is_silent or (column.name in wanted if wanted else column.name not in folded)
        for column in columns
    }
    asked = next(iter(given.get(by, ())), "")
    found = next((column for column in columns if column.value and column.name == asked.removeprefix("-")), None)
    if found is not None and found.value is not None:
        rows = sort_rows(rows, found.value, descending=asked.startswith("-"))
    order = asked if found is not None else default

    def address(key: str, value: str = "") -> str:
        rest = [pair for pair in pairs if pair[0] != key]
        return "?" + urlencode([*rest, (key, value)] if value else rest)

    hidable = [column for column in columns if not (column.is_kept or column.is_silent or column.is_detail)]
    return Grid(
        rows=list(rows),
        heads=[
            _make_head(column, order, f"sort-{prefix}{column.name}", partial(address, by))
            for column in columns
            if shown[column.name]
        ],
        shown=shown,
        same=[(column, value) for column, value in same if not shown[column.name]],
        intervals=intervals,
        is_sorted=found is not None,
        toggle=address("intervals", "" if intervals else "1") if has_intervals else "",
        choices=[(column, shown[column.name]) for column in hidable],
        parameter=hide,
        kept=[column.name for column in columns if column.is_kept],
        reset=address(hide) if wanted else "",
        others=[pair for pair in pairs if pair[0] != hide],
        carried=[pair for pair in pairs if pair[0].removeprefix(prefix) in ("sort", "columns", "intervals")],
    )


def _make_head(column: Column, order: str, id: str, sort: Callable[[str], str]) -> Head:
    """Return the heading of a column; `order` is that of the table, and `sort` returns the address of another."""
    # Narrow intervals are first.
    ascends = column.is_drawn or not column.is_number if column.is_ascending is None else column.is_ascending
    once, again = (column.name, f"-{column.name}")[:: 1 if ascends else -1]
    is_ordered = order.removeprefix("-") == column.name
    direction = ("descending" if order.startswith("-") else "ascending") if is_ordered else ""
    return Head(column, id, sort(again if order == once else once) if column.value else "", direction)


def _only_value(column: Column, rows: Sequence[Any]) -> list[Any]:
    """Return the value that all rows with any have in common, if the column is then shown once."""
    if not column.is_folded or column.value is None:
        return []
    values = [value for value in map(column.value, rows) if not is_missing(value)]
    return values[:1] if len(values) > 1 and all(value == values[0] for value in values) else []


# ---- the axis of intervals, and p-values ---------------------------------------------------------------------------

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
