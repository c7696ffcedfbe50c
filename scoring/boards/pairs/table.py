"""The table of the board of evaluators on compared pairs."""

from __future__ import annotations

from pydantic import model_validator

from scoring.boards.shapes import (
    ABSENT,
    BoardTable,
    Estimate,
    EvaluatorPart,
    Number,
    Part,
    TestPart,
    check_cells,
    check_square,
    fault,
)


class PairsCell(Estimate):
    epsilon: Number = ABSENT
    cross_validated: Estimate | None = None


class PairsRow(EvaluatorPart):
    letters: str
    n: Number
    n_missing: Number
    score_set: str | None
    cells: list[PairsCell | None]


class PairsColumn(Part):
    name: str
    n: Number


class PairsTable(BoardTable):
    columns: list[PairsColumn]
    ceiling: list[Estimate | None]
    by_lot: Number
    n_pairs: Number
    n_decided: Number
    n_tied: Number
    n_split: Number
    test: TestPart
    rows: list[PairsRow]
    evaluators: list[str] = ABSENT
    baseline: str = ABSENT
    shorter: bool = ABSENT

    @model_validator(mode="after")
    def check(self) -> PairsTable:
        check_cells(self.rows, self.columns, "columns")
        if len(self.ceiling) != len(self.columns):
            raise fault(f"must be {len(self.columns)}, as many as there are columns", ".ceiling")
        check_square(self.test)
        return self


NEEDED = ("systems", "references", "test")
Table = PairsTable
