"""Figures and sentences that several renderers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.boards.choices import EARLIER


def place(row: Mapping[str, Any]) -> str:
    """`1`, `2–4` where the interval of the rank is wider, or a dash."""
    if row["rank"] is None:
        return "-"
    low, high = row["rank_low"], row["rank_high"]
    return str(low) if low == high else f"{low}–{high}"


def is_marked(estimate: Mapping[str, Any]) -> bool:
    """Whether there is an interval that says something of itself, as one from few groups does."""
    return estimate.get("low") is not None and bool(estimate.get("note"))


EXCHANGED = {
    "perm-systems": "PERM-SYSTEMS: exchanges of whole systems",
    "perm-inputs": "PERM-INPUTS: exchanges of groups of items",
    "perm-both": "exchanges of groups of items, called PERM-BOTH in version 0.1.0",
    "bootstrap": "paired bootstrap",
    "williams": "Williams’ test",
}


def has_earlier_test(table: Mapping[str, Any]) -> bool:
    """Whether the letters come from the test that versions before 0.2.0 used at the system level."""
    test = table.get("test") or {}
    by_ratings = table.get("people", "ratings") == "ratings"
    return bool(test.get("test") == EARLIER and test["names"] and table.get("level") == "system" and by_ratings)


def letters_caption(table: Mapping[str, Any]) -> str:
    """What the letters of a table mean, or why it has none: the test by its name, about which systems and items it
    speaks, and the smallest p that it can give."""
    test = table["test"]
    named = EXCHANGED.get(test.get("test", ""), str(test.get("test", "")).upper())
    has_letters = any(row.get("letters") for row in table["rows"])
    n_drawn = test.get("k_used") or (test.get("k") if has_letters else 0) or 0
    drawn = "" if test.get("test") == "williams" else f", {n_drawn:,} draws"
    rows = "decided pairs" if table["kind"] == "pairs" else {"dialogue": "dialogues"}.get(table["level"], "outputs")
    rows = "systems" if table.get("people", "ratings") != "ratings" else rows
    of_rows = f"over {test.get('n_rows', 0):,} {rows} that all have scored"
    parts = [
        f"Evaluators that share a letter are not significantly different ({named}{drawn}; two-sided p ≤ "
        f"{test.get('alpha', 0.05)} after Holm’s correction for all pairs, {of_rows})."
    ]
    if not has_letters:
        why = f": {test['note']}" if test.get("note") else ""
        parts = [f"No letters{why}.", f"The test is {named}{drawn}, {of_rows}." if n_drawn else f"The test: {named}."]
    if has_earlier_test(table):
        parts.append("At this level that test finds differences far too often; later versions exchange whole systems.")
    if test.get("population"):
        parts.append(f"This speaks about {test['population']}.")
    if test.get("test") == "williams" and has_letters:
        parts.append(
            "It takes outputs for independent; of outputs of the same items its p may be too small, so rather report "
            "the permutation test."
        )
    by_outputs = table["kind"] == "evaluators" and table["level"] != "system" and rows != "systems"
    if by_outputs and any(row.get("n") not in (None, test.get("n_rows")) for row in table["rows"]):
        parts.append("Each coefficient itself is over all outputs that its own evaluator has scored.")
    if test.get("smallest_p"):
        parts.append(f"The smallest p of this test is {test['smallest_p']:.2g} before the correction.")
    return " ".join(parts)
