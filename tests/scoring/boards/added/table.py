"""The rows of the table."""

from __future__ import annotations

from scoring.boards.shapes import BoardTable, Estimate, EvaluatorPart


class CountsRow(EvaluatorPart):
    cells: list[Estimate]


class Table(BoardTable):
    rows: list[CountsRow]


NEEDED = ("systems", "references")
