"""The parameters of the board of evaluators by part of the items."""

from __future__ import annotations

from dataclasses import dataclass

from scoring.boards.base import Query, Size
from scoring.boards.choices import COEFFICIENTS
from scoring.boards.metrics.query import limit_of_tests


@dataclass(frozen=True)
class SlicesQuery(Query):
    """`key` is a key of the items' `meta`."""

    key: str = ""
    aspect: str = ""
    coefficient: str = "pearson"
    systems: str = "all"
    references: str = "original"
    ratings: str = "raw"
    filter: str = ""
    evaluators: str = ""

    kind = "slices"
    page = "evaluation/slices/"
    coefficients = COEFFICIENTS

    def is_large(self, size: Size) -> bool:
        limit = limit_of_tests(size, self, self.coefficient, is_tested=False)
        return size.more_judged(self.aspect, "ratings", limit)
