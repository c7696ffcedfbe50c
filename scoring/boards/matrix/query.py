"""The parameters of the table of correlations between evaluators."""

from dataclasses import dataclass
from typing import Any

from evalapp.translation import gettext_noop
from scoring.boards.base import FIGURE_COST, Data, Query, Size


@dataclass(frozen=True)
class MatrixQuery(Query):
    """`aspect` selects the scores of an evaluator that was trained on several aspects."""

    aspect: str = ""
    level: str = "segment"
    coefficient: str = "pearson"
    systems: str = "all"
    references: str = "original"
    evaluators: str = ""

    kind = "matrix"
    page = "evaluation/matrix/"
    description = "Correlations between the scores of evaluators over all outputs."
    flag_help = "correlations between evaluators over all outputs"
    tab = gettext_noop("Metric correlations")
    form_fields = ("aspect", "level", "coefficient", "systems", "references")
    coefficients = ("pearson", "spearman")

    def is_large(self, size: Size) -> bool:
        return size.more_than("scores", size.correlated // FIGURE_COST)

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        return data.score_sets(self, None, one_each=True)
