"""How the leaderboard of evaluators by aspect is rendered."""

from collections.abc import Mapping
from typing import Any

from evalapp.translation import gettext_noop

TITLE = gettext_noop("By aspect")
LEAD = gettext_noop("Correlation of each evaluator with human judgements, by aspect")
#: Name of a figure in a comparison of two tables.
FIGURE = "evaluator and aspect"


def list_names(table: Mapping[str, Any]) -> list[str]:
    return [aspect["aspect"] for aspect in table["aspects"]]
