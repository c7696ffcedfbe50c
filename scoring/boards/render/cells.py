"""Boards with a figure for every evaluator and column: by part, by aspect, against each other, on pairs.

The `columns` module of such a board has `list_names(table)`, and `pick_estimate(cell)` where a cell has several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalapp.markup import escape_latex
from scoring.boards.choices import COMPARED
from scoring.boards.registry import get_board
from scoring.boards.render.console import as_lines, chosen_line, excluded_line, plain, stale_lines
from scoring.boards.render.latex import figure, lead_lines, tabular
from scoring.plots import drawing

#: Places of one remark that are named.
MOST_PLACES = 8
PARTS = ("value", "low", "high", "n", "note")
Table = Mapping[str, Any]


def columns_of(table: Table) -> list[str]:
    """The heads of the cells, in their order."""
    names: list[str] = get_board(table["kind"]).module("columns").list_names(table)
    return names


def _pick(table: Table, cell: Mapping[str, Any]) -> Mapping[str, Any]:
    columns = get_board(table["kind"]).module("columns")
    estimate: Mapping[str, Any] = columns.pick_estimate(cell) if hasattr(columns, "pick_estimate") else cell
    return estimate


def cells_of(table: Table) -> list[tuple[str, str, Mapping[str, Any] | None, Mapping[str, Any]]]:
    """(row, column, estimate, the cell itself) for every cell; the estimate of an evaluator with itself is None."""
    names = columns_of(table)
    return [
        (row["evaluator"], name, None if cell is None else _pick(table, cell), cell or {})
        for row in table["rows"]
        for name, cell in zip(names, row["cells"], strict=True)
    ]


def remarks_of(table: Mapping[str, Any]) -> list[str]:
    """What marked and missing figures say of themselves, a line for all that say the same."""
    found = [(row, f"in {column}", cell) for row, column, cell, _ in cells_of(table) if cell is not None]
    found += [(row["evaluator"], "in all", row["estimate"]) for row in table["rows"] if "estimate" in row]
    said: dict[str, list[str]] = {}
    # Where columns are evaluators, too, the row says enough.
    names_rows = columns_of(table) == [row["evaluator"] for row in table["rows"]]
    for row, column, cell in found:
        if cell["note"]:
            said.setdefault(cell["note"], []).append(row if names_rows else f"{row} {column}")
    lines = []
    for note, places in said.items():
        named = list(dict.fromkeys(places))
        more = f" and {len(named) - MOST_PLACES:,} more" if len(named) > MOST_PLACES else ""
        lines.append(f"{note[0].upper()}{note[1:]}: {', '.join(named[:MOST_PLACES])}{more}.")
    return lines


def list_figures(table: Table) -> list[tuple[str, Mapping[str, Any]]]:
    """Every figure by a name of its own, for a comparison of two tables."""
    return [(f"{row}, {column}", estimate) for row, column, estimate, _ in cells_of(table) if estimate is not None]


def list_cells(table: Table) -> tuple[list[str], list[list[Any]]]:
    """A line for every cell, so that programs need not know how many columns there are."""
    columns = get_board(table["kind"]).module("columns")
    more, list_more = getattr(columns, "MORE", []), getattr(columns, "list_more", lambda cell: [])
    rows = [
        [row, column, *(estimate[part] for part in PARTS), *list_more(cell), table["signature"]]
        for row, column, estimate, cell in cells_of(table)
        if estimate is not None
    ]
    return ["evaluator", "column", *PARTS, *more, "settings"], rows


def write_latex(table: Table) -> list[str]:
    """One column for each head, figures without intervals; trivial baselines in italics."""
    names, rows = columns_of(table), []
    for row in table["rows"]:
        name = escape_latex(row["evaluator"])
        picked = (None if cell is None else _pick(table, cell) for cell in row["cells"])
        shown = ["" if cell is None else figure({**cell, "low": None}, 3) for cell in picked]
        rows.append(" & ".join([rf"\textit{{{name}}}" if row["is_sentinel"] else name, *shown]) + r" \\")
    head = " & ".join(["Evaluator", *(escape_latex(name) for name in names)]) + r" \\"
    return lead_lines(table) + tabular("l" + "r" * len(names), head, rows)


def write_lines(table: Table) -> Iterator[str]:
    """A line for every evaluator, a figure for every column; intervals are in the JSON and on the page."""
    yield from chosen_line(table)
    yield from table.get("counted", [])
    yield from stale_lines(table)
    yield from excluded_line(table)
    names = columns_of(table)
    rows: dict[str, list[str]] = {row["evaluator"]: [] for row in table["rows"]}
    for row, _, estimate, _ in cells_of(table):
        rows[row].append("" if estimate is None else plain(estimate["value"]))
    yield from as_lines(["evaluator", *names], [[name, *cells] for name, cells in rows.items()])
    yield from remarks_of(table)
    if table["note"]:
        yield table["note"]
    yield table["signature"]


def build_context(table: Table | None, query: Any) -> dict[str, Any]:
    """Templates read the cells from the table."""
    return {}


def draw(table: Table, query: Any, project: str, theme: Any) -> drawing.Plot:
    """A heat map of the cells."""
    cells = [
        {"row": row, "column": column, "value": estimate["value"]}
        for row, column, estimate, _ in cells_of(table)
        if estimate is not None
    ]
    title, name = get_board(table["kind"]).module("columns").TITLE, COMPARED[query.coefficient]
    words = "; ".join(f"{c['row']} and {c['column']} {c['value']:.2f}" for c in cells if c["value"] is not None)
    return drawing.draw_heat(
        cells, rows=[row["evaluator"] for row in table["rows"]], columns=columns_of(table),
        title=f"Evaluators {title.lower()}, {name}", description=words[:2000], axis=name, theme=theme,
    )  # fmt: skip
