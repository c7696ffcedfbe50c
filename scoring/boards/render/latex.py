"""Render boards as LaTeX tables (booktabs)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalapp.markup import escape_latex, join_latex
from evalapp.side_figures import failure_sentence
from scoring.boards.registry import get_board
from scoring.boards.render.figures import is_marked


def as_latex(table: Mapping[str, Any]) -> str:
    """Return the table for `booktabs`, with its signature as a comment."""
    return join_latex([*get_board(table["kind"]).get_renderer("write_latex")(table), ""])


def lead_lines(table: Mapping[str, Any]) -> list[str]:
    """Return comments above a table: signatures, simulated and repeated judgements, outdated and missing figures."""
    lines = [f"% {table['signature']}"]
    if table["n_simulated"]:
        lines.append("% Figures include simulated judgements.")
    lines += [f"% {notes}" for notes in table.get("counted", [])]
    signed = [row for row in table["rows"] if row.get("evaluator") and row["signature"]]
    lines += [f"% {row['evaluator']}: {row['signature']}" for row in signed]
    if table.get("evaluator"):
        lines.append(f"% {table['evaluator']['signature']}")
    lines += [f"% Out of date: {row['evaluator']}: {row['reason']}" for row in table.get("stale", [])]
    return lines + [f"% {sentence}" for sentence in [failure_sentence(table.get("failed", ()))] if sentence]


def mark_remarks(rows: Sequence[Mapping[str, Any]], name: str, parts: Sequence[str]) -> list[str]:
    """Return the notes of marked intervals, each with its rows. `parts` are the estimates of a row; without parts the
    row is an estimate."""
    notes: dict[str, list[str]] = {}
    for row in rows:
        for estimate in [row[part] for part in parts] if parts else [row]:
            if is_marked(estimate) and row[name] not in notes.setdefault(estimate["note"], []):
                notes[estimate["note"]].append(row[name])
    return [f"% $\\dagger$ {note}: {', '.join(names)}" for note, names in notes.items()]


def tabular(head: Sequence[str], rows: Sequence[Sequence[str]], columns: str = "") -> list[str]:
    """Return a table; without `columns` the first one is left-aligned, the others are right-aligned."""
    lines = [" & ".join(cells) + r" \\" for cells in (head, *rows)]
    columns = columns or "l" + "r" * (len(head) - 1)
    begin = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule"]
    return [*begin, *lines[1:], r"\bottomrule", r"\end{tabular}"]


def evaluator_name(row: Mapping[str, Any]) -> str:
    """Return the name of an evaluator with its letters as exponent; trivial baselines are in italics."""
    name = escape_latex(row["evaluator"])
    shown = rf"\textit{{{name}}}" if row["is_sentinel"] else name
    return shown + (f"$^{{{row['letters']}}}$" if row.get("letters") else "")


def figure(estimate: Mapping[str, Any], digits: int) -> str:
    if estimate["value"] is None:
        return "--"
    number: Callable[[float], str] = lambda x: f"{x:.{digits}f}"  # noqa: E731
    value = f"${number(estimate['value'])}$"
    if estimate["low"] is None:
        return value
    value += r"$^{\dagger}$" if is_marked(estimate) else ""
    return f"{value} {{\\small $[{number(estimate['low'])}, {number(estimate['high'])}]$}}"
