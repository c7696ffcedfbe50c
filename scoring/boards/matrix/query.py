"""The parameters of the board of evaluators against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scoring.boards.base import FIGURE_COST, Data, Query, Size


@dataclass(frozen=True)
class MatrixQuery(Query):
    """`aspect` chooses the scores of an evaluator that learned several."""

    aspect: str = ""
    level: str = "segment"
    coefficient: str = "pearson"
    systems: str = "all"
    references: str = "original"
    evaluators: str = ""

    kind = "matrix"
    page = "evaluation/matrix/"
    coefficients = ("pearson", "spearman")

    def is_large(self, size: Size) -> bool:
        return size.more_than("scores", size.correlated // FIGURE_COST)

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        return data.score_sets(self, None, one_each=True)
