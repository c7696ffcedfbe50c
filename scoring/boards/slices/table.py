"""The table of the board by part of the items."""

from __future__ import annotations

from pydantic import model_validator

from scoring.boards.shapes import BoardTable, Estimate, EvaluatorPart, Number, Part, check_cells


class SliceCell(Part):
    raw: Estimate
    shrunken: Estimate
    weight: Number


class SliceRow(EvaluatorPart):
    cells: list[SliceCell]


class SlicePart(Part):
    name: str
    n: Number


class SlicesTable(BoardTable):
    key: str
    coefficient: str
    parts: list[SlicePart]
    rows: list[SliceRow]

    @model_validator(mode="after")
    def check(self) -> SlicesTable:
        check_cells(self.rows, self.parts, "parts")
        return self


NEEDED = ("coefficient", "systems", "references", "ratings")
Table = SlicesTable
