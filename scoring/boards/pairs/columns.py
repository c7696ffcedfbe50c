"""What the renderers show of the board of evaluators on compared pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalapp.markup import escape_latex
from scoring.boards.render.cells import list_cells, list_figures, remarks_of
from scoring.boards.render.console import as_lines, counting_lines, interval, test_lines
from scoring.boards.render.figures import letters_caption
from scoring.boards.render.latex import figure, lead_lines, tabular
from scoring.boards.render.page import list_p_values, place_rows, span_shares
from scoring.plots import drawing

__all__ = ["list_cells", "list_figures"]

TITLE = "On compared pairs"
LEAD = "How often each evaluator says of two texts what people said"
#: The choices above the table.
FIELDS = ["aspect", "systems", "test", "references", "filter"]
#: What the aspects of the page were judged by.
JUDGED = "comparisons"
TEMPLATE = "scoring/evaluation/pairs.html"
#: What a figure of the table is called where two tables are compared.
FIGURE = "evaluator and figure"


def list_names(table: Mapping[str, Any]) -> list[str]:
    """The three figures of an evaluator."""
    return [column["name"] for column in table["columns"]]


def write_latex(table: Mapping[str, Any]) -> list[str]:
    """With intervals, letters as exponents, and what one person reaches against the others as the last row."""
    names = list_names(table)
    rows = []
    for row in table["rows"]:
        name = escape_latex(row["evaluator"])
        shown = rf"\textit{{{name}}}" if row["is_sentinel"] else name
        shown += f"$^{{{row['letters']}}}$" if row["letters"] else ""
        cells = ["" if cell is None else figure(cell, 3) for cell in row["cells"]]
        rows.append(" & ".join([shown, *cells, str(row["n"])]) + r" \\")
    own = table["ceiling"]
    if own[0]["value"] is not None:
        cells = ["" if cell is None else figure(cell, 3) for cell in own]
        rows.append(r"\midrule one person, by the others & " + " & ".join([*cells, str(own[0]["n"])]) + r" \\")
    head = " & ".join(["Evaluator", *(escape_latex(name.capitalize()) for name in names), "$n$"]) + r" \\"
    lines = lead_lines(table) + tabular("l" + "r" * (len(names) + 1), head, rows)
    lines += [f"% $\\dagger$ {remark}" for remark in remarks_of(table)]
    if table["test"]["names"]:
        lines += [f"% {letters_caption(table)}", f"% {table['test']['signature']}"]
    return lines


def write_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """A line for every evaluator with its three figures and their intervals."""
    yield (
        f"Evaluators of {found['project']} on {found['n_pairs']:,} compared pairs ({found['n_decided']:,} decided, "
        f"{found['n_tied']:,} tied): {found['aspect']}, systems {found['systems']}"
    )
    yield from counting_lines(found)
    if found["n_excluded"]:
        yield f"{found['n_excluded']:,} comparisons are left out, since some evaluator learned from their groups."
    shown = [(row, row["evaluator"] + (" (sentinel)" if row["is_sentinel"] else "")) for row in found["rows"]]
    cells = [
        [name, *("" if cell is None else interval(cell) for cell in row["cells"]), row["letters"], str(row["n"])]
        for row, name in shown
    ]
    if found["ceiling"][0]["value"] is not None:
        own = ["" if cell is None else interval(cell) for cell in found["ceiling"]]
        cells.append(["one person, by the others", *own, "", str(found["ceiling"][0]["n"])])
    head = ["evaluator", *list_names(found), "letters", "n"]
    yield from as_lines(head, cells, left=(0, len(head) - 2))
    yield from test_lines(found)
    if found.get("shorter"):
        yield "People prefer the shorter text here: less length is less the share of the shorter one."
    if found["by_lot"] is not None:
        yield f"By lot: 0.500 of decided pairs, {found['by_lot']:.3f} of all at best."
    if found["n_split"]:
        yield f"Without a verdict that most people gave, counted nowhere: {found['n_split']:,} pairs."
    if found["note"]:
        yield found["note"]
    yield found["signature"]


# ---- the page and its plot ------------------------------------------------------------------------------------


def build_context(table: Mapping[str, Any] | None, query: Any = None) -> dict[str, Any]:
    """What the table on compared pairs is drawn from: each row with its three figures and the first one's interval
    around one half, which drawing reaches."""
    if table is None:
        return {"rows": []}
    rows = [{**row, "decided": row["cells"][0]} for row in table["rows"]]
    chance = {"decided": {"value": 0.5, "low": None, "high": None}}
    span = span_shares([*rows, chance], "decided") if rows else (0.0, 1.0)
    drawn = place_rows(rows, span, "decided", signed=False)
    half = round(4 + 192 * (0.5 - span[0]) / ((span[1] - span[0]) or 1.0), 1)
    for row in drawn:
        row["half"] = half
    return {
        "rows": drawn,
        "tested_pairs": list_p_values(table),
        "has_letters": any(row["letters"] for row in drawn),
        "letters_caption": letters_caption(table) if table["test"]["names"] else "",
        "has_ties": table["n_tied"] > 0,
    }


def draw(table: Mapping[str, Any], query: Any, project: str, theme: Any) -> drawing.Plot:
    """A forest plot of the share of decided pairs."""
    rows = [{"label": row["evaluator"], "grey": row["is_sentinel"], **row["cells"][0]} for row in table["rows"]]
    words = "; ".join(f"{row['label']} {row['value']:.2f}" for row in rows if row["value"] is not None)
    return drawing.draw_forest(
        rows, title=f"Evaluators on compared pairs of {project}, {table['aspect']}", description=words[:2000],
        axis="decided pairs right, 95 %", theme=theme, zero=False,
    )  # fmt: skip
