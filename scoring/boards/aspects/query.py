"""The parameters of the board of evaluators by aspect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scoring.boards.base import Data, Query, Size
from scoring.boards.metrics.query import EvaluatorsQuery

#: Tables of single aspects that one request may compute.
MOST_ASPECTS_IN_REQUEST = 4


@dataclass(frozen=True)
class AspectsQuery(Query):
    """As the main board of evaluators, for all rated aspects."""

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
    has_grouping = True

    def of_aspect(self, aspect: str) -> EvaluatorsQuery:
        """The query of the main board of one aspect, as its own page asks it."""
        return EvaluatorsQuery(aspect=aspect, **self.params)

    def is_large(self, size: Size) -> bool:
        missing = size.missing_by_aspect(self)
        if len(missing) > MOST_ASPECTS_IN_REQUEST:
            return True
        return any(one.is_large(size.share(len(missing))) for one in missing)

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        return data.score_sets(self, None)

    def describe_source(self, data: Data, table: Mapping[str, Any], names: Callable[[Any], str]) -> dict[str, Any]:
        queries = [self.of_aspect(one["aspect"]) for one in table["aspects"]]
        tables = {
            one.aspect: {"params": one.params, "sets": [names(found) for found in one.select_sets(data, one.aspect)]}
            for one in queries
        }
        return {"tables": tables}
