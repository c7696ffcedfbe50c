"""The parameters of the leaderboard of systems."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalapp.translation import gettext as _
from scoring.boards.base import Data, Known, Query, Size, Way
from scoring.boards.choices import ASSISTED, MODELED, MODELS

GAMES = "glicko2"


@dataclass(frozen=True)
class SystemsQuery(Query):
    """`by` is the slug of an evaluator; empty means human judgements.

    `filter` names a filter of raters, `campaign` is the slug of the only campaign whose judgements count. `weights` and
    `covariates` are options of models of comparisons; `per` is the unit that Turing M1 counts. `assist` is the slug of
    an evaluator whose scores of all outputs narrow the intervals of human judgements (by default `ridge`, which is
    fitted again while people judge), `target` what these are about.
    """

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
    assist: str = ""
    target: str = "items-like-these"

    kind = "systems"
    page = "systems/"
    description = "Systems, best first, by human judgements or by an evaluator."

    @classmethod
    def complete(cls, values: dict[str, str], default_method: Callable[[str, str], str]) -> dict[str, str]:
        if {"method", "by"} & set(values):
            return values
        return {**values, "method": default_method(values.get("aspect", ""), values.get("campaign", ""))}

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.covariates != "none" and (self.by or self.method not in MODELED):
            text = _("Only the methods %(methods)s adjust for covariates.")
            yield text % {"methods": ", ".join(MODELED)}, "covariates"
        elif self.per != "judgement" and (self.by or self.method != "m1"):
            yield _("Only the method m1 can count the majority verdict of each output."), "per"
        if self.by and self.campaign:
            yield _("Scores of an evaluator belong to no campaign: leave out by or campaign."), "campaign"
        if self.assist:
            yield from self._assist_faults()
        elif self.target != "items-like-these":
            yield _("Without assist, intervals are always about items like these."), "target"

    def _assist_faults(self) -> Iterator[tuple[str, str]]:
        if self.by:
            yield _("An evaluator assists human judgements: leave out by or assist."), "assist"
        elif self.method not in ASSISTED:
            text = _("An evaluator can assist the methods %(methods)s, not %(method)s.")
            yield text % {"methods": ", ".join(ASSISTED), "method": self.method}, "assist"
        elif self.method != "mean" and self.target != "items-like-these":
            yield _("Only mean ratings have intervals for these items."), "target"
        elif self.covariates != "none" or self.weights != "none":
            option = "covariates" if self.covariates != "none" else "weights"
            yield _("With an evaluator’s help, models have no covariates and no weights."), option

    def list_fields(self, known: Known) -> Sequence[str]:
        """`known` names evaluators that can play games as `judges`, and `adaptive` campaigns."""
        if self.by in known["judges"]:
            games = ["by", "method", "systems"]
            return (
                games if self.plays_games and self.by not in known["judges_with_references"] else [*games, "references"]
            )
        if self.by:
            return ["aspect", "by", "systems", "references"]
        options = {
            "ratings": self.method == "mean",
            "weights": self.method in MODELS and bool(known["adaptive"]) and not self.assist,
            "covariates": self.method in MODELED and not self.assist,
            "per": self.method == "m1",
            "assist": bool(self.assist) and self.method in ASSISTED,
            "target": bool(self.assist) and self.method == "mean",
            "references": bool(self.assist),
        }
        fields = (
            "aspect", "method", "assist", "target", "ratings", "systems", "campaign", "filter", "weights", "covariates",
            "per", "references",
        )  # fmt: skip
        return [name for name in fields if options.get(name, True)]

    def list_choices(self, known: Known) -> dict[str, Sequence[str]]:
        return {**super().list_choices(known), **({"method": ["mean", GAMES]} if self.by else {})}

    @property
    def reads_scores(self) -> bool:
        return bool(self.scored_by)

    @property
    def scored_by(self) -> str:
        return self.by or self.assist

    @property
    def plays_games(self) -> bool:
        return bool(self.by) and self.method == GAMES

    @classmethod
    def list_exported(cls, judged: Mapping[str, Collection[Way]], has_scores: bool) -> Sequence[Query]:
        methods: dict[Way, str] = {"ratings": "mean", "pairs": "win-rate", "turing": "m1"}
        return [
            cls(aspect=aspect, method=method)
            for aspect, ways in judged.items()
            for way, method in methods.items()
            if way in ways
        ]

    def is_large(self, size: Size) -> bool:
        if self.by:
            return size.more_than("scores", size.rows)
        if self.method == GAMES:
            # Games are simulated a hundred times; their time depends on the number of systems.
            return size.more_than("systems", size.systems)
        return size.more_judged(self.aspect, "ratings" if self.method == "mean" else "comparisons", size.rows)

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        return data.score_sets(replace(self, aspect=aspect) if self.assist else self, None) if self.scored_by else []
