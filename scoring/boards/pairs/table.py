"""The table of the leaderboard of evaluators on compared pairs."""

from __future__ import annotations

from pydantic import model_validator

from scoring.boards.shapes import (
    ABSENT,
    CHOSEN,
    CLUSTER,
    LETTERS,
    BoardTable,
    Estimate,
    EvaluatorPart,
    Number,
    Part,
    ScoreSetName,
    TestPart,
    about,
    check_cells,
    check_square,
    fault,
    optional,
)


class PairsCell(Estimate):
    epsilon: Number = ABSENT
    cross_validated: Estimate | None = None


class PairsRow(EvaluatorPart):
    """An evaluator; `cells` are in the order of the table's `columns`."""

    letters: str = about(LETTERS)
    cluster: Number = optional(CLUSTER)
    n: Number = about("Decided pairs with both scores.")
    n_missing: Number = about("Pairs in which an output has no score.")
    equal: Number = optional("Share of decided pairs with equal scores.")
    score_set: ScoreSetName
    cells: list[PairsCell | None]


class PairsColumn(Part):
    name: str
    n: Number


class PairsTable(BoardTable):
    columns: list[PairsColumn]
    ceiling: list[Estimate | None] = about("Agreement of a rater with the others, in the order of `columns`.")
    by_lot: Number = about("Chance level on all pairs: calling every pair tied, or guessing, whichever is higher.")
    n_pairs: Number
    n_decided: Number
    n_tied: Number
    n_split: Number = about("Pairs without a most frequent verdict, which count nowhere.")
    test: TestPart
    rows: list[PairsRow]
    evaluators: list[str] = optional(CHOSEN)
    baseline: str = ABSENT
    shorter: bool = optional("The baseline is preferring the shorter text, because raters prefer it here.")

    @model_validator(mode="after")
    def check(self) -> PairsTable:
        check_cells(self.rows, self.columns, "columns")
        if len(self.ceiling) != len(self.columns):
            raise fault(f"must be {len(self.columns)}, as many as there are columns", ".ceiling")
        check_square(self.test)
        return self


NEEDED = ("systems", "references", "test")
Table = PairsTable
