"""Render boards as files: CSV, JSON and LaTeX."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from evalapp.markup import guard_formula
from scoring.boards.registry import get_board
from scoring.boards.render.latex import as_latex


def as_csv(table: Mapping[str, Any]) -> str:
    """Return the table as CSV with full precision; undefined figures are empty."""
    head, rows = get_board(table["kind"]).get_renderer("list_cells")(table)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([guard_formula(value) for value in row] for row in rows)
    return buffer.getvalue()


def as_json(table: Mapping[str, Any]) -> str:
    """Return the stored table."""
    return json.dumps(table, ensure_ascii=False, indent=1, allow_nan=False)


#: File extension -> (function that writes the file, media type).
FORMATS: dict[str, tuple[Callable[[Mapping[str, Any]], str], str]] = {
    "csv": (as_csv, "text/csv; charset=utf-8"),
    "json": (as_json, "application/json"),
    "tex": (as_latex, "application/x-tex; charset=utf-8"),
}
