"""The table of the leaderboard of evaluators by reference set."""

from __future__ import annotations

from pydantic import model_validator

from scoring.boards.metrics.table import Coefficients
from scoring.boards.shapes import ABSENT, BoardTable, Number, Part, Slug, fault


class Difference(Part):
    a: str
    b: str
    value: Number
    low: Number
    high: Number
    p: Number
    p_holm: Number
    williams: Number = ABSENT


class Cell(Coefficients):
    n: Number
    signature: str
    note: str


class ReferencesRow(Part):
    evaluator: Slug
    name: str
    differences: list[Difference]
    n: Number
    cells: dict[str, Cell]


class SetPart(Part):
    name: str
    origin: str
    n_references: Number
    per_item: Number


class ReferencesTable(BoardTable):
    baseline: str
    rows: list[ReferencesRow]
    sets: list[SetPart] = ABSENT

    @model_validator(mode="after")
    def check_sets(self) -> ReferencesTable:
        for place, row in enumerate(self.rows):
            for one in self.sets or ():
                if one.name not in row.cells:
                    raise fault("is missing", f".rows[{place}].cells.{one.name[:50]}")
        return self


NEEDED = ("level", "grouping", "systems", "ratings")
#: Members of an entry needed to recompute the table, and of the table that only pages need.
MEMBERS = ("sets", "references")
SHOWN = ("sets",)
Table = ReferencesTable
