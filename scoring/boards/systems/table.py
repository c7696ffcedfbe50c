"""The table of the board of systems."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from scoring.boards.shapes import ABSENT, BoardTable, Defined, Number, Part, Slug, fault, list_of


class Effect(Part):
    """An estimate; one in points of the rating needs all of itself, since pages tell it in words."""

    value: Number = ABSENT
    low: Number = ABSENT
    high: Number = ABSENT
    n: Number = ABSENT
    note: str = ABSENT
    points: Number = ABSENT

    @model_validator(mode="after")
    def check_points(self) -> Effect:
        if "points" not in self.model_fields_set:
            return self
        for name in ("value", "low", "high", "n", "note"):
            if name not in self.model_fields_set:
                raise fault("is missing", f".{name}")
        if self.value is not None and self.points is None:
            raise fault("must be a number beside a value", ".points")
        return self


class Spread(Part):
    """The effects of raters: the lowest and the highest, if there are any."""

    n: Number
    low: Number
    high: Number

    @model_validator(mode="after")
    def check_ends(self) -> Spread:
        for name in ("low", "high"):
            if self.n and getattr(self, name) is None:
                raise fault("must be a number", f".{name}")
        return self


class Extras(Part):
    side: Effect = ABSENT
    length: Effect = ABSENT
    side_bias: Effect = ABSENT
    length_bias: Effect = ABSENT
    rater_effects: Spread = ABSENT
    both_bad_share: Number = ABSENT


class SystemRow(Part):
    label: str
    system: str
    kind: str
    step: Number
    shares: dict[str, Defined]
    note: str
    rank: Number
    rank_low: Number
    rank_high: Number
    tier: Number
    value: Number
    low: Number
    high: Number
    n: Number
    n_ratings: Number
    simulated: Number

    @model_validator(mode="after")
    def check_shares(self) -> SystemRow:
        """Of comparisons there is all that a bar is made of."""
        for name in ("tie", "loss"):
            if "win" in self.shares and name not in self.shares:
                raise fault("is missing", f".shares.{name}")
        return self


class EvaluatorInfo(Part):
    slug: Slug
    aspect: str
    signature: str = ABSENT
    n_in_training: Number = ABSENT


class SystemsTable(BoardTable):
    method: str
    scale: list_of(Number, 2)  # type: ignore[valid-type]
    extras: Extras
    rows: list[SystemRow]
    by: str | None = None
    groups: list[list_of(str, 1)] = ABSENT  # type: ignore[valid-type]
    findings: list[str] = ABSENT
    totals: dict[str, Number] = ABSENT
    evaluator: EvaluatorInfo = ABSENT


#: Parameters without which the table cannot be computed again, and members of its entry in an export.
NEEDED = ("by", "method", "ratings", "systems")


def needed_members(entry: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Members of the entry and of the table that computing it again reads."""
    return (("sets",), ("evaluator",)) if entry["params"]["by"] else ((), ())


Table = SystemsTable
