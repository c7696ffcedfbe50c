"""The parameters of the leaderboard of evaluators by subset of items."""

from dataclasses import dataclass

from evalapp.translation import gettext_noop
from scoring.boards.base import Query, Size
from scoring.boards.choices import COEFFICIENTS
from scoring.boards.metrics.query import limit_tests


@dataclass(frozen=True)
class SlicesQuery(Query):
    """`key` is a key of the items' `meta` whose values divide the items into subsets."""

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
    description = "Evaluators by subset of items: coefficients as measured, and shrunk towards the overall value."
    flag_help = "by subset of items: a key of their meta (default: the first that divides them)"
    flag_value = "key"
    tab = gettext_noop("By subset of items")
    form_fields = ("key", "aspect", "coefficient", "systems", "ratings", "references", "filter")
    coefficients = COEFFICIENTS

    def is_large(self, size: Size) -> bool:
        limit = limit_tests(size, self, self.coefficient, is_tested=False)
        return size.more_judged(self.aspect, "ratings", limit)
