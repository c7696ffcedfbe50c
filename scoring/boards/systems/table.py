"""The table of the board of systems."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from scoring.boards.shapes import ABSENT, BoardTable, Defined, Number, Part, Slug, about, fault, list_of, optional


class Effect(Part):
    """An estimate; one in points of the rating must be complete."""

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
            raise fault("must be a number if there is a value", ".points")
        return self


class Spread(Part):
    """Range of the raters' effects, if there are any."""

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
    """Results of a method: connectivity, the tie parameter, shares, biases.

    Games by an evaluator have `verdicts`, `swap_consistency` and `people` (agreement of their order with human
    judgements).
    """

    side: Effect = ABSENT
    length: Effect = ABSENT
    side_bias: Effect = ABSENT
    length_bias: Effect = ABSENT
    rater_effects: Spread = ABSENT
    both_bad_share: Number = ABSENT
    saved: Number = ABSENT


class HumanOnly(Part):
    """The figure without the evaluator."""

    value: Number
    low: Number
    high: Number
    note: str = ABSENT


class Assistance(Part):
    """What an evaluator adds to the judgements of a system."""

    human: HumanOnly
    n_scored: Number
    effective: Number = about("Number of judged outputs that would give the same variance without the evaluator.")
    weight: Number = about("Share of the evaluator's prediction that is used, 0 to 1.")


class SystemRow(Part):
    label: str
    system: str
    kind: str
    step: Number
    shares: dict[str, Defined]
    note: str
    rank: Number = about(
        "Null: no comparison connects the system with the ranked ones. A rank without a value: the rating is infinite, "
        "because the system never lost or never won."
    )
    rank_low: Number
    rank_high: Number
    tier: Number = about("Systems of the same tier are linked by overlapping rank intervals.")
    value: Number
    low: Number
    high: Number
    n: Number
    n_ratings: Number
    simulated: Number = about("Share of simulated judgements.")
    assisted: Assistance = optional("With `assist`: the figure by judgements only, and what the evaluator adds.")
    sd: Number = optional("Standard deviation of the rating between simulations of games.")

    @model_validator(mode="after")
    def check_shares(self) -> SystemRow:
        """Check that comparisons have every part of the bar."""
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
    assist: str = optional("The evaluator that assists the judgements.")
    target: str = optional("What assisted figures are about: items like these, or these items.")
    groups: list[list_of(str, 1)] = optional(  # type: ignore[valid-type]
        "Runs of adjacent systems that are not significantly different; without a model, whose rank intervals overlap."
    )
    findings: list[str] = optional("Sentences with figures.")
    totals: dict[str, Number] = ABSENT
    evaluator: EvaluatorInfo = ABSENT


#: Parameters needed to recompute the table.
NEEDED = ("by", "method", "ratings", "systems")


def needed_members(entry: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the members of the entry and of the table that recomputing reads."""
    params = entry["params"]
    return (("sets",), ("evaluator",)) if params["by"] or params.get("assist") else ((), ())


Table = SystemsTable
