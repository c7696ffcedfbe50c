"""Render boards as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from evalapp.markup import guard_formula
from scoring.boards.registry import get_board


def as_csv(table: Mapping[str, Any]) -> str:
    """Return the table as CSV with full precision; undefined figures are empty."""
    head, rows = get_board(table["kind"]).get_renderer("list_cells")(table)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([guard_formula(value) for value in row] for row in rows)
    return buffer.getvalue()
