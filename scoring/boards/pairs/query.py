"""The parameters of the leaderboard of evaluators on compared pairs of outputs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop
from scoring.boards.base import FIGURE_COST, Known, Query, Size
from scoring.boards.choices import TESTS


@dataclass(frozen=True)
class PairsQuery(Query):
    """`test` compares the evaluators with each other."""

    aspect: str = ""
    systems: str = "all"
    references: str = "original"
    test: str = "permutation"
    filter: str = ""
    evaluators: str = ""

    kind = "pairs"
    page = "evaluation/pairs/"
    description = (
        "Evaluators on compared pairs of outputs: the share of decided pairs that they order like most raters, the "
        "difference from the length baseline, and the share of all pairs on which they give the human verdict, ties "
        "included."
    )
    flag_help = "accuracy on compared pairs of outputs"
    tab = gettext_noop("Pairwise accuracy")
    form_fields = ("aspect", "systems", "test", "references", "filter")
    judged_by = "comparisons"

    def list_choices(self, known: Known) -> dict[str, Sequence[str]]:
        return {"test": [name for name in TESTS if name != "williams"]}

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.test == "williams":
            yield _("Williams’ test compares correlations: choose permutation or bootstrap."), "test"

    def is_large(self, size: Size) -> bool:
        return size.more_than("comparisons", size.rows // FIGURE_COST)
