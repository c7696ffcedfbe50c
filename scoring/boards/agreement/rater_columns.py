"""The table of raters as a page and a command show it: which columns there are, and each cell as words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """`part` is the member of a rater's report; a column that nobody has a figure for is left out."""

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
    Column("bias", "Bias", "How much higher than the others this rater rates the same things, on the scale.", _signed),
    Column("spread", "Spread", "Standard deviation of this rater's ratings.", _plain),
    Column("seconds", "Time", "Median seconds for one judgement.", _seconds),
    Column("self_consistency", "Repeats", "Share of what was shown twice that got the same answer.", _share),
    Column("control_failures", "Controls failed", "Share of control items answered otherwise than expected.", _share),
    Column("agreement", "With the others", "Correlation with the mean of the other raters of the same things.", _plain),
    Column("drift", "Drift", "Bias in the later half of the judgements minus that in the earlier half.", _signed),
)


def list_used_columns(rows: Sequence[Row]) -> list[Column]:
    return [column for column in COLUMNS if any(_value(row, column.part) is not None for row in rows)]


def format_cells(row: Row, rows: Sequence[Row]) -> list[dict[str, str]]:
    """The cells of a rater under `list_used_columns(rows)`; undefined ones are a dash with the reason as note."""
    cells = []
    for column in list_used_columns(rows):
        found = row.get(column.part) or {}
        value = _value(row, column.part)
        cells.append({"text": "-" if value is None else column.text(value), "note": found.get("note", "")})
    return cells


def _value(row: Row, part: str) -> float | None:
    found = row.get(part)
    value = found.get("value") if found else None
    return None if value is None else float(value)
