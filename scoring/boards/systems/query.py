"""The parameters of the board of systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scoring.boards.base import Data, Query, Size
from scoring.boards.choices import MODELED

GAMES = "glicko2"


@dataclass(frozen=True)
class SystemsQuery(Query):
    """`by` is the slug of an evaluator; empty means people. `filter` names an exclusion of raters. `weights` and
    `covariates` are for the models of comparisons. `campaign` is the slug of the campaign whose judgements count
    alone; `per` says what Turing M1 counts."""

    aspect: str = ""
    method: str = "mean"
    ratings: str = "raw"
    systems: str = "all"
    by: str = ""
    references: str = "original"
    filter: str = ""
    weights: str = "none"
    covariates: str = "none"
    campaign: str = ""
    per: str = "judgement"

    kind = "systems"
    page = "systems/"

    @classmethod
    def complete(cls, values: dict[str, str], usual_method: Callable[[str, str], str]) -> dict[str, str]:
        if {"method", "by"} & set(values):
            return values
        return {**values, "method": usual_method(values.get("aspect", ""), values.get("campaign", ""))}

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.covariates != "none" and (self.by or self.method not in MODELED):
            yield (
                f"Only {', '.join(MODELED)} can adjust for covariates: choose one of them as the method.",
                "covariates",
            )
        elif self.per != "judgement" and (self.by or self.method != "m1"):
            yield "Only m1 takes the majority of each output: choose it as the method.", "per"
        if self.by and self.campaign:
            yield "An evaluator’s scores belong to no campaign: leave out one of the two.", "campaign"

    @property
    def reads_scores(self) -> bool:
        return bool(self.by)

    @property
    def plays_games(self) -> bool:
        return bool(self.by) and self.method == GAMES

    def is_large(self, size: Size) -> bool:
        if self.by:
            return size.more_than("scores", size.rows)
        if self.method == GAMES:
            # Games are simulated a hundred times: their time depends on the number of systems.
            return size.more_than("systems", size.systems)
        return size.more_judged(self.aspect, "ratings" if self.method == "mean" else "comparisons", size.rows)

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        return data.score_sets(self, None) if self.by else []

    def describe_source(self, data: Data, table: Mapping[str, Any], names: Callable[[Any], str]) -> dict[str, Any]:
        return {"sets": [names(one) for one in self.select_sets(data, "")]} if self.by else {}
