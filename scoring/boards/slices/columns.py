"""How the leaderboard of evaluators by subset of items is rendered."""

from collections.abc import Mapping
from typing import Any

from evalapp.translation import gettext_noop

TITLE = gettext_noop("By subset of items")
LEAD = gettext_noop("Correlation of each evaluator with human judgements, by subset of items")
#: Name of a figure in a comparison of two tables.
FIGURE = "evaluator and part"
#: Columns of a CSV file after those of the estimate, which is the shrunk one.
MORE = ["raw", "raw_low", "raw_high", "weight"]


def list_names(table: Mapping[str, Any]) -> list[str]:
    return [part["name"] for part in table["parts"]]


def pick_estimate(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the estimate of a subset to show: the shrunk one."""
    estimate: Mapping[str, Any] = cell["shrunken"]
    return estimate


def list_more(cell: Mapping[str, Any]) -> list[Any]:
    """Return the cells of the columns `MORE`."""
    return [*(cell["raw"][end] for end in ("value", "low", "high")), cell["weight"]]
