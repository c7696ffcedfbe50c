"""The table of the board of evaluators by aspect."""

from __future__ import annotations

from pydantic import model_validator

from scoring.boards.choices import COEFFICIENTS
from scoring.boards.metrics.table import EXTRA
from scoring.boards.metrics.table import NEEDED as OF_EVALUATORS
from scoring.boards.shapes import BoardTable, Estimate, EvaluatorPart, Part, check_cells, fault, one_of


class AspectsRow(EvaluatorPart):
    cells: list[Estimate]
    score_set: str | None


class AspectPart(Part):
    aspect: str


class AspectsTable(BoardTable):
    coefficient: str
    figure: one_of(*COEFFICIENTS, *EXTRA)  # type: ignore[valid-type]
    aspects: list[AspectPart]
    rows: list[AspectsRow]

    @model_validator(mode="after")
    def check(self) -> AspectsTable:
        check_cells(self.rows, self.aspects, "aspects")
        if self.rows and not self.aspects:
            raise fault("must be empty where there is no aspect", ".rows")
        return self


NEEDED = (*OF_EVALUATORS, "coefficient")
#: Of the parameters of each aspect's own table.
NEEDED_INSIDE = OF_EVALUATORS
MEMBERS = ("tables",)
Table = AspectsTable
