"""What somebody wants of an export: format, how far judgements are summed up, what goes along."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

LEVELS = ("per-rater", "aggregated", "both")


@dataclass(frozen=True)
class Wishes:
    """`level`: judgements by rater, summed up by output and pair, or both. `scores`: scores and the tables that rest on
    them. `raters`: one of `people.NAMINGS`. `judgements`: order, side and chance of each judgement of a campaign.
    `attributes`: what is about single people (times, remarks, figures by rater), which they must have agreed to.
    `audit`: who did what."""

    format: str = "jsonl"
    level: str = "per-rater"
    scores: bool = True
    raters: str = "kept"
    judgements: bool = False
    attributes: bool = False
    audit: bool = False

    @property
    def per_rater(self) -> bool:
        return self.level != "aggregated"

    @property
    def aggregated(self) -> bool:
        return self.level != "per-rater"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


FLAGS = ("scores", "judgements", "attributes", "audit")
