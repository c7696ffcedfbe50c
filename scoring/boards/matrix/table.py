"""The table of correlations between evaluators."""

from __future__ import annotations

from pydantic import model_validator

from scoring.boards.shapes import CHOSEN, BoardTable, Estimate, EvaluatorPart, check_cells, optional


class MatrixRow(EvaluatorPart):
    cells: list[Estimate | None]


class MatrixTable(BoardTable):
    coefficient: str
    rows: list[MatrixRow]
    evaluators: list[str] = optional(CHOSEN)

    @model_validator(mode="after")
    def check(self) -> MatrixTable:
        check_cells(self.rows, self.rows, "rows")
        return self


NEEDED = ("level", "coefficient", "systems", "references")
Table = MatrixTable
