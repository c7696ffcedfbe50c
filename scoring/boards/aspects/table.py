"""The table of the leaderboard of evaluators by aspect."""

from __future__ import annotations

from pydantic import model_validator

from scoring.boards.choices import COEFFICIENTS
from scoring.boards.metrics.table import EXTRA
from scoring.boards.metrics.table import NEEDED as METRICS_NEEDED
from scoring.boards.shapes import (
    CHOSEN,
    BoardTable,
    Estimate,
    EvaluatorPart,
    Part,
    ScoreSetName,
    check_cells,
    fault,
    one_of,
    optional,
)


class AspectsRow(EvaluatorPart):
    cells: list[Estimate]
    score_set: ScoreSetName


class AspectPart(Part):
    aspect: str


class AspectsTable(BoardTable):
    coefficient: str
    figure: one_of(*COEFFICIENTS, *EXTRA)  # type: ignore[valid-type]
    aspects: list[AspectPart]
    rows: list[AspectsRow]
    evaluators: list[str] = optional(CHOSEN)

    @model_validator(mode="after")
    def check(self) -> AspectsTable:
        check_cells(self.rows, self.aspects, "aspects")
        if self.rows and not self.aspects:
            raise fault("must be empty where there is no aspect", ".rows")
        return self


NEEDED = (*METRICS_NEEDED, "coefficient")
#: Parameters of the table of each aspect.
NEEDED_INSIDE = METRICS_NEEDED
MEMBERS = ("tables",)
Table = AspectsTable
