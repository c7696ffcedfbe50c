"""Render boards as text, for commands."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalapp.side_figures import failure_sentence
from scoring.boards.registry import get_board
from scoring.boards.render.figures import letters_caption


def as_text(table: Mapping[str, Any]) -> str:
    """Return the table of a board as text."""
    return "\n".join(get_board(table["kind"]).get_renderer("write_lines")(table))


def as_lines(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Return aligned rows; columns in `left` are left-aligned, others right-aligned."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def interval(estimate: Mapping[str, Any], digits: int = 3) -> str:
    """Format an estimate as `0.341 [0.220, 0.455]`, or a dash if it is undefined."""
    if estimate["value"] is None:
        return "-"
    text = f"{estimate['value']:.{digits}f}"
    if estimate["low"] is None:
        return text
    return f"{text} [{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"


def plain(value: float | None) -> str:
    """Format a value with three digits, or a dash."""
    return "-" if value is None else f"{value:.3f}"


def stale_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on missing figures and outdated scores, with advice."""
    if sentence := failure_sentence(table.get("failed", ())):
        yield sentence
    named: dict[str, list[str]] = {}
    for row in table.get("stale", []):
        named.setdefault(row["reason"], []).append(row["evaluator"])
    for reason, evaluators in sorted(named.items()):
        yield f"Out of date: {', '.join(dict.fromkeys(evaluators))}: {reason}."
    if any(not row.get("final") for row in table.get("stale", [])):
        yield f"Score again (only changed outputs are scored): evalapp score EVALUATOR --project {table['project']}"


def excluded_line(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line on judged outputs in training data, which the table leaves out."""
    if n := table.get("n_excluded", 0):
        yield f"{n:,} rated outputs are left out: an evaluator in this table was trained on their groups."


def filter_line(used: Mapping[str, Any]) -> str:
    """Return a line on the raters excluded by the filter."""
    return (
        f"Without {used['raters']} rater{'s' if used['raters'] != 1 else ''} (filter {used['name']}): {used['reason']}"
    )


def chosen_line(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line if only some evaluators are compared."""
    if table["evaluators"]:
        yield f"Only selected evaluators are compared: {', '.join(table['evaluators'])}."


def counting_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on chosen evaluators, filters, simulated judgements and outdated scores."""
    yield from chosen_line(table)
    if table.get("filter"):
        yield filter_line(table["filter"])
    if table["n_simulated"]:
        yield "Figures include simulated judgements."
    yield from table.get("counted", [])
    yield from stale_lines(table)


def test_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on the tests and their letters."""
    test = table["test"]
    if not test["names"]:
        yield f"No tests ({test['signature']}). {test['note']}".rstrip()
        return
    caption = letters_caption(table)
    yield caption
    for line in (test["note"], test.get("changed", "")):
        if line and line not in caption:
            yield f"{line}."
    yield test["signature"]
