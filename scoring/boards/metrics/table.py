"""The table of the board of evaluators."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from scoring.boards.choices import COEFFICIENTS, FIGURES, PEOPLE
from scoring.boards.shapes import (
    ABSENT,
    CHOSEN,
    CLUSTER,
    LETTERS,
    BoardTable,
    Estimate,
    EvaluatorPart,
    Fault,
    Number,
    Part,
    ScoreSetName,
    TestPart,
    about,
    check_square,
    fault,
    one_of,
    optional,
)

#: Figures that all rows have or none.
EXTRA = ("accuracy", "pa", "spa", "calibrated")


class Coefficients(Part):
    pearson: Estimate
    spearman: Estimate
    kendall: Estimate


class Whole(Coefficients):
    """The figures over all rated outputs, training data included."""

    n: Number


class Accuracy(Estimate):
    """Accuracy of pairs of outputs within items, with calibrated ties; `epsilon` is the threshold of ties."""

    epsilon: Number = ABSENT
    cross_validated: Estimate | None = ABSENT


class OverRidge(Estimate):
    """By how much the coefficient exceeds that of the best trained ridge, on outputs that both have scored."""

    rival: str


class EvaluatorRow(EvaluatorPart, Coefficients):
    n: Number
    n_missing: Number
    note: str
    letters: str = about(LETTERS)
    cluster: Number = optional(CLUSTER)
    whole: Whole | None = about("Null if no output was left out.")
    corrected: Estimate | None = about("The coefficient divided by the noise ceiling.")
    score_set: ScoreSetName
    accuracy: Accuracy = optional("At the level of outputs.")
    pa: Estimate = optional("At the system level: the share of pairs of systems ordered as by human judgements.")
    spa: Estimate = optional("At the system level: soft pairwise accuracy.")
    calibrated: Estimate = optional(
        "At the level of dialogues: Spearman’s correlation of the means of the systems with human means from which the "
        "leniency of raters is removed."
    )
    n_in_training: Number = optional("Rated outputs in the evaluator's training data; they count in no figure.")
    values: list[Number] = optional(
        "Against a ranking: the evaluator’s value of each system that has one in `scores`, in the same order."
    )
    over_ridge: OverRidge = optional("Of a trained evaluator other than ridge, if a trained ridge is in the table.")
    saved: Number = optional(
        "At the level of outputs: share of the judgements that the evaluator saves if it assists means of systems."
    )
    stale: str = optional("Why the scores are out of date, or empty.")
    n_unscored: Number = optional("Outputs without a score, rated or not.")


class PeopleScore(Part):
    """The value of a system according to human comparisons."""

    label: str
    value: Number
    low: Number
    high: Number


class EvaluatorsTable(BoardTable):
    level: str
    coefficient: str
    ceiling: Estimate = about("The highest coefficient an error-free metric could reach with these raters’ means.")
    test: TestPart
    rows: list[EvaluatorRow]
    people: one_of(*PEOPLE) = optional(  # type: ignore[valid-type]
        "What evaluators are compared with: ratings, or a ranking of the systems."
    )
    evaluators: list[str] = optional(CHOSEN)
    scores: list[PeopleScore] = optional("Against a ranking: the systems' values, best first.")
    n_uncommon: Number = optional("At the system level: rated outputs that some evaluator has not scored.")
    population: str = optional("The systems and items to which the intervals generalise.")
    coverage: str = optional("Where intervals cover the true value less or more often than 95 %.")

    @model_validator(mode="after")
    def check_rows(self) -> EvaluatorsTable:
        """Check that every row has the same figures."""
        figures = [{name for name in EXTRA if name in row.model_fields_set} for row in self.rows]
        for place, present in enumerate(figures):
            if present != figures[0]:
                name = sorted(present ^ figures[0])[0]
                raise fault("must be in all rows or in none", f".rows[{place}].{name}")
        check_square(self.test)
        return self


#: Parameters without which the table cannot be computed again.
NEEDED = ("level", "grouping", "systems", "references", "ratings")


def find_further_faults(entry: Any, where: str) -> list[Fault]:
    """Return a fault if rows lack the figure by which a page sorts them."""
    asked = entry["params"].get("coefficient")
    figure = FIGURES.get(asked, asked)
    if figure in EXTRA and any(figure not in row for row in entry["table"]["rows"]):
        return [(f"{where}.table.rows", f"must have “{figure}”, by which they are sorted")]
    return []


Table = EvaluatorsTable
assert tuple(Coefficients.model_fields) == COEFFICIENTS
