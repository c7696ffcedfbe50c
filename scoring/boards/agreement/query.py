"""The parameters of the tables of inter-annotator agreement."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.translation import gettext as _
from scoring.boards.base import Data, Query, Size, Way
from scoring.boards.choices import RATINGS


@dataclass(frozen=True)
class AgreementQuery(Query):
    """Without an aspect: an overview of all aspects. `campaign` is a slug, `judged` a kind of judgement; empty means
    all."""

    aspect: str = ""
    judged: str = ""
    campaign: str = ""
    scale: str = "auto"
    filter: str = ""
    ratings: str = "raw"

    kind = "agreement"
    page = "agreement/"
    description = "Inter-annotator agreement: every aspect, or one aspect in detail."
    in_leaderboards = False
    names_raters = True

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.ratings != "raw" and self.scale in ("nominal", "ratio"):
            text = _("The ratings option “%(ratings)s” needs the scale ordinal or interval.")
            yield text % {"ratings": _(RATINGS[self.ratings])}, "scale"

    @classmethod
    def list_exported(cls, judged: Mapping[str, Collection[Way]], has_scores: bool) -> Sequence[Query]:
        return [cls()] if any(judged.values()) else []

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
