"""The tables of the board of agreement: of all aspects, or of one."""

from __future__ import annotations

from typing import Any

from scoring.boards.choices import JUDGED
from scoring.boards.shapes import ABSENT, BoardTable, Estimate, Number, Part, list_of, one_of

Judged = one_of(*JUDGED)


class Coefficient(Estimate):
    name: str
    label: str


class Line(Part):
    """One aspect, one way of judging and one source."""

    aspect: str
    judged: Judged  # type: ignore[valid-type]
    source: str
    scale: str
    coefficients: list_of(Coefficient, 1)  # type: ignore[valid-type]
    n_units: Number
    n_raters: Number
    n_judgements: Number
    n_simulated: Number


class Share(Part):
    share: Number = ABSENT
    n: Number = ABSENT


class AgreementTable(BoardTable):
    campaign: str
    scale: str
    notes: list[str] = ABSENT
    prevalence: list[Share] = ABSENT
    n_units: Number = ABSENT
    n_judgements: Number = ABSENT


class OverviewTable(AgreementTable):
    rows: list[Line]


class DetailTable(AgreementTable):
    judged: Judged  # type: ignore[valid-type]
    rows: list[Coefficient]


NEEDED = ("aspect", "judged", "campaign", "scale")
MEMBERS = ()


def choose_model(table: Any) -> type[AgreementTable]:
    """By whether the table is about one aspect."""
    return DetailTable if isinstance(table, dict) and table.get("aspect") else OverviewTable
