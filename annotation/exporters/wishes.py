"""What somebody wants of an export: format, how far judgements are summed up, what goes along."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evalapp.common.params import param

from .formats import FORMATS
from .people import NAMINGS

LEVELS = ("per-rater", "aggregated", "both")


@dataclass(frozen=True)
class Wishes:
    """What goes into an export, and in which form."""

    format: str = param("jsonl", help="Format of the tables.", choices=FORMATS)
    level: str = param("per-rater", help="Judgements by rater, aggregated by output and pair, or both.", choices=LEVELS)
    scores: bool = param(True, help="Scores, and the tables that are computed from them.")
    raters: str = param("kept", help="Names of raters: short keys, pseudonyms, or as uploaded.", choices=NAMINGS)
    judgements: bool = param(False, help="Order, side and propensity of each judgement of a campaign.")
    attributes: bool = param(False, help="Times, remarks and figures by rater: only where the raters agreed to it.")
    audit: bool = param(False, help="The audit: who did what.")

    @property
    def per_rater(self) -> bool:
        return self.level != "aggregated"

    @property
    def aggregated(self) -> bool:
        return self.level != "per-rater"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
