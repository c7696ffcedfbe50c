"""Options of an export: format, aggregation and optional parts."""

from dataclasses import asdict, dataclass
from typing import Any

from evalapp.common.params import param

from .formats import FORMATS
from .layouts import LAYOUTS
from .people import NAMINGS

#: Formats of the tables of a project, then layouts, which use only the option `raters`.
ALL_FORMATS = (*FORMATS, *LAYOUTS)
LEVELS = ("per-rater", "aggregated", "both")


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export."""

    format: str = param("jsonl", help="Format of the tables, or layout for another program.", choices=ALL_FORMATS)
    level: str = param("per-rater", help="Judgements by rater, aggregated by output and pair, or both.", choices=LEVELS)
    scores: bool = param(True, help="Scores and leaderboards.")
    raters: str = param("kept", help="Rater ids: kept unless identifying, pseudonyms, or as uploaded.", choices=NAMINGS)
    answers: bool = param(False, help="Raw answers of language models that judge, with tokens and cost.")
    judgements: bool = param(False, help="Order, sides and selection probability of each judgement.")
    attributes: bool = param(False, help="Times, notes and statistics by rater; needs the raters' consent.")
    audit: bool = param(False, help="The audit log.")
    temporary: bool = param(False, help="Not listed, and deleted after a day: for programs that delete it themselves.")

    @property
    def per_rater(self) -> bool:
        return self.level != "aggregated"

    @property
    def aggregated(self) -> bool:
        return self.level != "per-rater"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
