"""The tables of the board of inter-annotator agreement: an overview of all aspects, or one aspect in detail."""

from typing import Any

from scoring.boards.choices import JUDGED
from scoring.boards.shapes import ABSENT, BoardTable, Estimate, Number, Part, list_of, one_of, optional

Judged = one_of(*JUDGED)


class Coefficient(Estimate):
    name: str
    label: str


class Line(Part):
    """The agreement on one aspect, by kind of judgement and by source (a campaign, an upload, or all)."""

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
    """Agreement on every aspect, or on one aspect with reports of its raters."""

    campaign: str
    scale: str
    rows: list[Any] = optional("A line with `coefficients` for every aspect; for one aspect its coefficients.")
    notes: list[str] = ABSENT
    prevalence: list[Share] = optional("How often each value was given.")
    n_units: Number = ABSENT
    n_judgements: Number = ABSENT


class OverviewTable(AgreementTable):
    rows: list[Line]


class DetailTable(AgreementTable):
    judged: Judged  # type: ignore[valid-type]
    rows: list[Coefficient]


Table = AgreementTable
NEEDED = ("aspect", "judged", "campaign", "scale")
MEMBERS = ()


def choose_model(table: Any) -> type[AgreementTable]:
    """Return the model of the overview or of the detail of an aspect."""
    return DetailTable if isinstance(table, dict) and table.get("aspect") else OverviewTable
