"""Render boards as JSON, and the formats of files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from scoring.boards.render.csv import as_csv
from scoring.boards.render.latex import as_latex


def as_json(table: Mapping[str, Any]) -> str:
    """Return the stored table."""
    return json.dumps(table, ensure_ascii=False, indent=1, allow_nan=False)


#: File extension -> (function that writes the file, media type).
FORMATS: dict[str, tuple[Callable[[Mapping[str, Any]], str], str]] = {
    "csv": (as_csv, "text/csv; charset=utf-8"),
    "json": (as_json, "application/json"),
    "tex": (as_latex, "application/x-tex; charset=utf-8"),
}
