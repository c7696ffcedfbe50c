"""Boards as JSON, and the file of a board in any of its formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from scoring.boards.render.csv import as_csv
from scoring.boards.render.latex import as_latex


def as_json(table: Mapping[str, Any]) -> str:
    """The table of a board as it is stored."""
    return json.dumps(table, ensure_ascii=False, indent=1, allow_nan=False)


#: Ending of a file -> how it is written, and its media type.
FORMATS: dict[str, tuple[Callable[[Mapping[str, Any]], str], str]] = {
    "csv": (as_csv, "text/csv; charset=utf-8"),
    "json": (as_json, "application/json"),
    "tex": (as_latex, "application/x-tex; charset=utf-8"),
}
