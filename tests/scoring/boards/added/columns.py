"""What the renderers show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TITLE = "By number of scores"
LEAD = "Share of the rated outputs that each evaluator has scored"
FIGURE = "evaluator"


def list_names(table: Mapping[str, Any]) -> list[str]:
    return ["scored"]
