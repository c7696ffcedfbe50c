"""Columns of the table of raters, and its cells as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column; `part` is a member of a rater's report. Columns without figures are left out."""

    part: str
    label: str
    help: str
    text: Callable[[float], str]


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _plain(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


COLUMNS = (
    Column("bias", "Bias", "Mean difference from the other raters of the same units, in points of the scale.", _signed),
    Column("spread", "Spread", "Standard deviation of this rater's ratings.", _plain),
    Column("seconds", "Time", "Median seconds per judgement.", _seconds),
    Column("self_consistency", "Repeats", "Share of repeated units with the same answer.", _share),
    Column("control_failures", "Controls failed", "Share of control items with an unexpected answer.", _share),
    Column("agreement", "Correlation", "Correlation with the mean of the other raters of the same units.", _plain),
    Column("drift", "Drift", "Bias in the second half of the judgements minus that in the first half.", _signed),
)


def list_used_columns(rows: Sequence[Row]) -> list[Column]:
    return [column for column in COLUMNS if any(_value(row, column.part) is not None for row in rows)]


def format_cells(row: Row, rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return the cells of a rater; undefined ones are a dash with the reason as note."""
    cells = []
    for column in list_used_columns(rows):
        result = row.get(column.part) or {}
        value = _value(row, column.part)
        cells.append({"text": "-" if value is None else column.text(value), "note": result.get("note", "")})
    return cells


def _value(row: Row, part: str) -> float | None:
    result = row.get(part)
    value = result.get("value") if result else None
    return None if value is None else float(value)
