"""Verdicts against the reference from ratings in which the reference was rated as a system, for Turing M1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ReferenceVerdicts:
    """Columns for `rank_by_m1`: one row for each rating of a generation by a person who also rated the reference.

    `verdicts` are "a" (better than the reference), "tie" and "b". `n_left_out` ratings of generations have no rating of
    the reference for the same item by the same person.
    """

    items: tuple[str, ...]
    systems: tuple[str, ...]
    verdicts: tuple[str, ...]
    n_left_out: int


def compare_with_reference(
    items: Sequence[str], systems: Sequence[str], raters: Sequence[str], values: Sequence[float], reference: str
) -> ReferenceVerdicts:
    """Return the verdicts of each person on each generation against the output of the system `reference` for the same
    item, from that person's own ratings.

    `items`, `systems`, `raters` and `values` are columns with a row per rating of an aspect. Means over raters count
    as ratings by a single person. Raises ValueError if the columns differ in length, if a person rated an output twice,
    or if nobody rated the reference.
    """
    if len({len(items), len(systems), len(raters), len(values)}) > 1:
        raise ValueError("items, systems, raters and values must have the same length")
    rated = dict(zip(zip(items, systems, raters, strict=True), values, strict=True))
    if len(rated) < len(values):
        raise ValueError("a person rated the same output twice: keep one rating")
    if reference not in systems:
        raise ValueError(f"no rating is of the system {reference!r}")
    rows: list[tuple[str, str, str]] = []
    left_out = 0
    for (item, system, rater), value in rated.items():
        if system == reference:
            continue
        own = rated.get((item, reference, rater))
        if own is None:
            left_out += 1
        else:
            rows.append((item, system, "a" if value > own else "b" if value < own else "tie"))
    known_items, known_systems, verdicts = (tuple(row[place] for row in rows) for place in range(3))
    return ReferenceVerdicts(known_items, known_systems, verdicts, left_out)
