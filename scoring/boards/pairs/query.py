"""The parameters of the board of evaluators on the pairs of outputs that people compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scoring.boards.base import FIGURE_COST, Query, Size
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

    def choices(self) -> dict[str, Sequence[str]]:
        return {"test": [name for name in TESTS if name != "williams"]}

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.test == "williams":
            yield "Williams’ test is for correlations: choose permutation or bootstrap.", "test"

    def is_large(self, size: Size) -> bool:
        return size.more_than("comparisons", size.rows // FIGURE_COST)
