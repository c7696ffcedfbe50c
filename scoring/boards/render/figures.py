"""Texts that several renderers share."""

from collections.abc import Mapping
from typing import Any

from scoring.boards.choices import EARLIER


def is_marked(estimate: Mapping[str, Any]) -> bool:
    """Return whether an interval has a note, for example that there are few groups."""
    return estimate.get("low") is not None and bool(estimate.get("note"))


EXCHANGED = {
    "perm-systems": "PERM-SYSTEMS: exchanges of whole systems",
    "perm-inputs": "PERM-INPUTS: exchanges of groups of items",
    "perm-both": "exchanges of groups of items, called PERM-BOTH in version 0.1.0",
    "bootstrap": "paired bootstrap",
    "williams": "Williams’ test",
}


def has_earlier_test(table: Mapping[str, Any]) -> bool:
    """Return whether the letters are from the system-level test of versions before 0.2.0."""
    test = table.get("test") or {}
    by_ratings = table.get("people", "ratings") == "ratings"
    return bool(test.get("test") == EARLIER and test["names"] and table.get("level") == "system" and by_ratings)


def letters_caption(table: Mapping[str, Any]) -> str:
    """Return the caption of the letters: the test, the population it generalises to, and its smallest p."""
    test = table["test"]
    named = EXCHANGED.get(test.get("test", ""), str(test.get("test", "")).upper())
    has_letters = any(row.get("letters") for row in table["rows"])
    n_drawn = test.get("k_used") or (test.get("k") if has_letters else 0) or 0
    drawn = "" if test.get("test") == "williams" else f", {n_drawn:,} draws"
    rows = "decided pairs" if table["kind"] == "pairs" else {"dialogue": "dialogues"}.get(table["level"], "outputs")
    rows = "systems" if table.get("people", "ratings") != "ratings" else rows
    of_rows = f"over {test.get('n_rows', 0):,} {rows} scored by all"
    parts = [
        f"Evaluators that share a letter are not significantly different ({named}{drawn}; two-sided p ≤ "
        f"{test.get('alpha', 0.05)} after Holm’s correction for all pairs, {of_rows})."
    ]
    if not has_letters:
        why = f": {test['note']}" if test.get("note") else ""
        parts = [f"No letters{why}.", f"The test is {named}{drawn}, {of_rows}." if n_drawn else f"The test: {named}."]
    if has_earlier_test(table):
        parts.append("At this level that test has too many false positives; later versions exchange whole systems.")
    if test.get("population"):
        parts.append(f"It generalises to {test['population']}.")
    if test.get("test") == "williams" and has_letters:
        parts.append(
            "It assumes independent outputs; with several outputs per item its p may be too small, so prefer the "
            "permutation test."
        )
    by_outputs = table["kind"] == "evaluators" and table["level"] != "system" and rows != "systems"
    if by_outputs and any(row.get("n") not in (None, test.get("n_rows")) for row in table["rows"]):
        parts.append("Each coefficient uses all outputs that its evaluator has scored.")
    if test.get("smallest_p"):
        parts.append(f"The smallest p of this test is {test['smallest_p']:.2g} before the correction.")
    return " ".join(parts)
