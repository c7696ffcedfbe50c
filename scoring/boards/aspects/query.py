"""The parameters of the leaderboard of evaluators by aspect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evalapp.translation import gettext_noop
from scoring.boards.base import Data, Query, Size
from scoring.boards.metrics.query import EvaluatorsQuery

#: Tables of aspects that one request may compute.
MOST_ASPECTS_IN_REQUEST = 4


@dataclass(frozen=True)
class AspectsQuery(Query):
    """Like the main leaderboard of evaluators, for all rated aspects."""

    level: str = "segment"
    grouping: str = "none"
    systems: str = "all"
    references: str = "original"
    ratings: str = "raw"
    coefficient: str = "pearson"
    filter: str = ""
    evaluators: str = ""

    kind = "aspects"
    page = "evaluation/aspects/"
    description = "Evaluators by aspect: a coefficient for each, with its interval and letters of significance."
    flag_help = "all aspects side by side"
    tab = gettext_noop("By aspect")
    form_fields = ("level", "grouping", "systems", "coefficient", "ratings", "references", "filter")
    has_grouping = True

    def for_aspect(self, aspect: str) -> EvaluatorsQuery:
        """Return the query of the main leaderboard of an aspect."""
        return EvaluatorsQuery(aspect=aspect, **self.params)

    def is_large(self, size: Size) -> bool:
        missing = size.missing_by_aspect(self)
        if len(missing) > MOST_ASPECTS_IN_REQUEST:
            return True
        return any(one.is_large(size.share(len(missing))) for one in missing)

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        return data.score_sets(self, None)

    def describe_source(self, data: Data, table: Mapping[str, Any], names: Callable[[Any], str]) -> dict[str, Any]:
        queries = [self.for_aspect(one["aspect"]) for one in table["aspects"]]
        tables = {
            one.aspect: {
                "params": one.params,
                "sets": [*map(names, one.select_sets(data, one.aspect))],
            }
            for one in queries
        }
        return {"tables": tables}
