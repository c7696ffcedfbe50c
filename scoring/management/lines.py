"""Tables and figures of this room's commands as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalapp.side_figures import failure_sentence


def as_lines(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Aligned columns: those numbered in `left` to the left, numbers to the right."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def interval(estimate: Mapping[str, Any], digits: int = 3) -> str:
    """`0.341 [0.220, 0.455]`, or a dash where it is undefined."""
    if estimate["value"] is None:
        return "-"
    text = f"{estimate['value']:.{digits}f}"
    if estimate["low"] is None:
        return text
    return f"{text} [{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"


def stale_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Which figures of a table are missing, which of its scores are out of date, a line for each reason, what to do."""
    if sentence := failure_sentence(found.get("failed", ())):
        yield sentence
    named: dict[str, list[str]] = {}
    for row in found.get("stale", []):
        named.setdefault(row["reason"], []).append(row["evaluator"])
    for reason, evaluators in sorted(named.items()):
        yield f"Out of date: {', '.join(dict.fromkeys(evaluators))}: {reason}."
    if any(not row.get("final") for row in found.get("stale", [])):
        yield f"Score again, only what changed is scored: manage.py score EVALUATOR --project {found['project']}"


def excluded_line(found: Mapping[str, Any]) -> Iterator[str]:
    """How many judged outputs a table leaves out since some evaluator learned from them; older tables do not say."""
    if n := found.get("n_excluded", 0):
        yield f"{n:,} rated outputs are left out, since some evaluator of this table learned from their groups."


def filter_line(used: Mapping[str, Any]) -> str:
    """What a table says of the raters that a named filter left out of it."""
    return (
        f"Without {used['raters']} rater{'s' if used['raters'] != 1 else ''} (filter {used['name']}): {used['reason']}"
    )
