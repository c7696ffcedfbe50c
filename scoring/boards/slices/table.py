"""The table of the leaderboard of evaluators by subset of items."""

from __future__ import annotations

from pydantic import model_validator

from scoring.boards.shapes import (
    CHOSEN,
    BoardTable,
    Estimate,
    EvaluatorPart,
    Number,
    Part,
    about,
    check_cells,
    optional,
)


class SliceCell(Part):
    """A coefficient in one subset, as measured (`raw`) and shrunk towards the overall value."""

    raw: Estimate
    shrunken: Estimate
    weight: Number = about("Weight of the subset's own data in the shrunk value.")


class SliceRow(EvaluatorPart):
    cells: list[SliceCell]


class SlicePart(Part):
    name: str
    n: Number


class SlicesTable(BoardTable):
    key: str = about("The key of the items' `meta`.")
    coefficient: str
    parts: list[SlicePart]
    rows: list[SliceRow]
    evaluators: list[str] = optional(CHOSEN)

    @model_validator(mode="after")
    def check(self) -> SlicesTable:
        check_cells(self.rows, self.parts, "parts")
        return self


NEEDED = ("coefficient", "systems", "references", "ratings")
Table = SlicesTable
