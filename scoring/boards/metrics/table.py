"""The table of the board of evaluators."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from scoring.boards.choices import COEFFICIENTS, FIGURES, PEOPLE
from scoring.boards.shapes import (
    ABSENT,
    BoardTable,
    Estimate,
    EvaluatorPart,
    Fault,
    Number,
    Part,
    TestPart,
    check_square,
    fault,
    one_of,
)

#: Figures that either all rows have, or none.
EXTRA = ("accuracy", "pa", "spa", "calibrated")


class Coefficients(Part):
    pearson: Estimate
    spearman: Estimate
    kendall: Estimate


class Whole(Coefficients):
    n: Number


class EvaluatorRow(EvaluatorPart, Coefficients):
    n: Number
    n_missing: Number
    note: str
    letters: str
    whole: Whole | None
    corrected: Estimate | None
    score_set: str | None
    accuracy: Estimate = ABSENT
    pa: Estimate = ABSENT
    spa: Estimate = ABSENT
    calibrated: Estimate = ABSENT
    n_in_training: Number = ABSENT
    values: list[Number] = ABSENT


class PeopleScore(Part):
    label: str
    value: Number
    low: Number
    high: Number


class EvaluatorsTable(BoardTable):
    level: str
    coefficient: str
    ceiling: Estimate
    test: TestPart
    rows: list[EvaluatorRow]
    people: one_of(*PEOPLE) = ABSENT  # type: ignore[valid-type]
    evaluators: list[str] = ABSENT
    scores: list[PeopleScore] = ABSENT

    @model_validator(mode="after")
    def check_rows(self) -> EvaluatorsTable:
        """The same figures in every row."""
        figures = [{name for name in EXTRA if name in row.model_fields_set} for row in self.rows]
        for place, found in enumerate(figures):
            if found != figures[0]:
                name = sorted(found ^ figures[0])[0]
                raise fault("must stand in all rows or in none", f".rows[{place}].{name}")
        check_square(self.test)
        return self


#: Parameters without which the table cannot be computed again.
NEEDED = ("level", "grouping", "systems", "references", "ratings")


def find_further_faults(entry: Any, where: str) -> list[Fault]:
    """The rows lack the figure by which a page orders them."""
    asked = entry["params"].get("coefficient")
    figure = FIGURES.get(asked, asked)
    if figure in EXTRA and any(figure not in row for row in entry["table"]["rows"]):
        return [(f"{where}.table.rows", f"must have “{figure}”, by which they are in order")]
    return []


Table = EvaluatorsTable
assert tuple(Coefficients.model_fields) == COEFFICIENTS
