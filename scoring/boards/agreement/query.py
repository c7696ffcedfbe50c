"""The parameters of the board of inter-annotator agreement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scoring.boards.base import Data, Query, Size
from scoring.boards.choices import RATINGS


@dataclass(frozen=True)
class AgreementQuery(Query):
    """Without an aspect: a line for every aspect. `campaign` is a slug, `judged` a way of judging; empty means all."""

    aspect: str = ""
    judged: str = ""
    campaign: str = ""
    scale: str = "auto"
    filter: str = ""
    ratings: str = "raw"

    kind = "agreement"
    page = "agreement/"
    names_raters = True

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.ratings != "raw" and self.scale in ("nominal", "ratio"):
            text = (
                f"{RATINGS[self.ratings]} have an order and distances, no categories or zero: use ordinal or interval."
            )
            yield text[0].upper() + text[1:], "scale"

    @property
    def reads_scores(self) -> bool:
        return False

    def is_large(self, size: Size) -> bool:
        compared = size.judged if self.aspect else size.rows
        return size.more_than("ratings", size.judged, self.aspect) or size.more_than(
            "comparisons", compared, self.aspect
        )

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        return []
