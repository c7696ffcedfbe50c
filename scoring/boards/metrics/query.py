"""The parameters of the board of evaluators: how well their scores correlate with human judgements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scoring.boards.base import FIGURE_COST, RANKS_COST, Query, Size
from scoring.boards.choices import BY_COMPARISONS


def limit_of_tests(size: Size, query: Query, coefficient: str, *, is_tested: bool) -> int:
    """Ratings that one request may read, where each evaluator has intervals and, if tested, is compared with all."""
    n = size.count_sets(query)
    cost = n * (n + 10) // 2 if is_tested else n * FIGURE_COST
    slow = RANKS_COST if coefficient in ("spearman", "kendall") else 1
    return min(size.rows, size.correlated // (cost * slow))


@dataclass(frozen=True)
class EvaluatorsQuery(Query):
    """`coefficient` orders the evaluators and is tested; `people` is what they are compared with: ratings, or a
    ranking of the systems from comparisons (one value per system); `undefined` is what groups without a coefficient
    count. `evaluators`, here and in other boards, are slugs with commas between: only these are shown and tested, and
    only what they learned from is left out; empty means all."""

    aspect: str = ""
    level: str = "segment"
    grouping: str = "none"
    systems: str = "all"
    references: str = "original"
    ratings: str = "raw"
    coefficient: str = "pearson"
    test: str = "permutation"
    filter: str = ""
    people: str = "ratings"
    undefined: str = "drop"
    evaluators: str = ""

    kind = "evaluators"
    page = "evaluation/"
    has_grouping = True
    has_dialogues = True

    @classmethod
    def complete(cls, values: dict[str, str], usual_method: Callable[[str, str], str]) -> dict[str, str]:
        if "people" not in values and cls._fits_comparisons(values):
            method = usual_method(values.get("aspect", ""), "")
            values = {**values, "people": {"mean": "ratings"}.get(method, method)}
        return values

    @classmethod
    def _fits_comparisons(cls, values: dict[str, str]) -> bool:
        """Whether comparisons, which give one value per system, can answer these parameters."""
        asked = cls(**{"level": "system", **values, "people": "win-rate"})
        return asked.grouping == "none" and asked.ratings == "raw" and not [*asked._faults_of_comparisons()]

    def _faults_of_comparisons(self) -> Iterator[tuple[str, str]]:
        if self.people != "ratings" and self.level != "system":
            yield "Comparisons give a value for every system, none for single outputs: use the level system.", "level"
        if self.people != "ratings" and self.coefficient == "spa":
            yield "Soft pairwise accuracy needs ratings of the outputs: choose pa or a correlation.", "coefficient"

    def faults(self) -> Iterator[tuple[str, str]]:
        yield from self._faults_of_comparisons()
        yield from super().faults()

    def is_large(self, size: Size) -> bool:
        if self.people == "glicko2":
            return size.more_than("systems", size.systems)
        if self.people != "ratings":
            return size.more_judged(self.aspect, "comparisons", size.rows)
        limit = limit_of_tests(size, self, self.coefficient, is_tested=self.test != "none")
        if self.level == "dialogue":
            return size.more_than("dialogues", limit)
        return size.more_judged(self.aspect, "ratings", limit, BY_COMPARISONS)
