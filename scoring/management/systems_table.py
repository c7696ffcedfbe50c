"""The leaderboard of systems as lines of text, for the commands that show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scoring.management.lines import as_lines, filter_line, interval, stale_lines
from scoring.selectors.leaderboards import MODELS
from scoring.tables import effects_of


def systems_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What it is about, a row for each system, what cannot be told apart, remarks, and the signature."""
    by = found["by"] or f"people, {found['aspect']}"
    yield f"Systems of {found['project']} by {by} ({found['method']})"
    if found.get("campaign"):
        yield f"Only what was judged in the campaign {found['campaign']}."
    if found.get("filter"):
        yield filter_line(found["filter"])
    if found["n_simulated"]:
        yield "Simulated judgements are among these figures."
    yield from stale_lines(found)
    if seen := (found.get("evaluator") or {}).get("n_in_training"):
        what = "verdicts are on items" if found["method"] in MODELS else "scores are of items"
        yield f"{seen:,} of the {what} that {by} learned from."
    if connected := (found["extras"].get("connectivity") or {}).get("note"):
        yield f"Note: {connected}."
    if found["rows"]:
        yield from _rows(found)
    for group in found["groups"]:
        yield f"Cannot be told apart: {', '.join(group)}"
    yield from [*found.get("counted", []), *effects_of(found), *found.get("findings", [])]
    for row in found["extras"].get("people", []):
        yield _agreement(row)
    if found["note"]:
        yield found["note"]
    yield found["signature"]
    if found["method"] == "glicko2" and found["by"]:
        yield found["evaluator"]["signature"]


def _rows(found: Mapping[str, Any]) -> list[str]:
    model = found["method"] in MODELS
    compared = any("win" in row["shares"] for row in found["rows"])
    judged = compared or not found["by"]
    spread = any(row.get("sd") is not None for row in found["rows"])
    rows = [
        [
            _place(row),
            row["label"],
            row["kind"],
            interval(row, 0 if model else 3),
            *([f"{row['sd']:.1f}"] if spread else []),
            str(row["n"]),
            *([str(row["n_ratings"])] if judged else []),
            *([_shares(row["shares"])] if compared else []),
            row["note"],
        ]
        for row in found["rows"]
    ]
    head = ["rank", "system", "kind", "rating" if model else "value", *(["sd"] if spread else []), "outputs"]
    head += [("verdicts" if found["by"] else "games") if compared else "judgements"] if judged else []
    head += [*(["win / tie / loss %"] if compared else []), ""]
    return as_lines(head, rows, left=(0, 1, 2, len(head) - 1))


def _agreement(row: Mapping[str, Any]) -> str:
    """How far the order of games is people's, for one aspect."""
    who = "simulated raters" if row["simulated"] else "people"
    figures = f"Spearman {interval(row['spearman'])}, Kendall {interval(row['kendall'])}"
    if row["spearman"]["value"] is None:
        figures = row["spearman"]["note"]
    elif row["spearman"]["note"]:
        figures += f" ({row['spearman']['note']})"
    return f"Beside {who} ({row['aspect']}, {row['judged_by']}): {figures}, over {row['n_systems']} systems"


def _shares(shares: Mapping[str, float]) -> str:
    if "win" not in shares:
        return "-"
    tie = shares["tie"] + shares.get("both_bad", 0.0)
    return " / ".join(f"{100 * share:.0f}" for share in (shares["win"], tie, shares["loss"]))


def _place(row: Mapping[str, Any]) -> str:
    if row["rank"] is None:
        return "-"
    low, high = row["rank_low"], row["rank_high"]
    return str(low) if low == high else f"{low}-{high}"
