"""The parameters of the leaderboard of evaluators by reference set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evalapp.translation import gettext_noop
from scoring.boards.base import FIGURE_COST, Data, Query, Size


@dataclass(frozen=True)
class EnhancedQuery(Query):
    """`references` are names separated by commas; the others are compared with the first. Empty: all with scores."""

    aspect: str = ""
    level: str = "segment"
    grouping: str = "none"
    systems: str = "all"
    references: str = ""
    ratings: str = "raw"
    filter: str = ""
    evaluators: str = ""

    kind = "enhanced"
    page = "references/enhanced/"
    description = "Evaluators by reference set, with the differences between sets."
    in_leaderboards = False
    tab = gettext_noop("By reference set")
    form_fields = ("aspect", "level", "grouping", "systems", "ratings")
    has_grouping = True

    @property
    def reference_set(self) -> str:
        return ""

    def is_large(self, size: Size) -> bool:
        # Each cell is correlated once; each pair of an evaluator's sets is resampled twice more.
        n_names, n_cells = size.count_cells(self)
        limit = min(size.rows, size.correlated // (FIGURE_COST * n_cells * max(1, n_names - 1)))
        return size.more_judged(self.aspect, "ratings", limit)

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        _, rows = data.score_sets_by_references(self, aspect)
        return [one for of_sets in rows for one in of_sets.values()]

    def describe_source(self, data: Data, table: Mapping[str, Any], names: Callable[[Any], str]) -> dict[str, Any]:
        references, rows = data.score_sets_by_references(self, table["aspect"])
        return {"references": references, "sets": [names(one) for of_sets in rows for one in of_sets.values()]}
