"""The parameters of the board."""

from __future__ import annotations

from dataclasses import dataclass

from scoring.boards.base import Query, Size


@dataclass(frozen=True)
class CountsQuery(Query):
    aspect: str = ""
    systems: str = "all"
    references: str = "original"
    ratings: str = "raw"
    filter: str = ""
    evaluators: str = ""

    kind = "counts"
    page = "evaluation/counts/"
    flag_help = "share of rated outputs with a score"
    tab = "By number of scores"
    form_fields = ("aspect", "systems", "references")

    def is_large(self, size: Size) -> bool:
        return size.more_judged(self.aspect, "ratings", size.rows)
