"""Boards with a figure for every evaluator and column: by subset, by aspect, against each other, on pairs.

The `columns` module of such a board has `TITLE`, `LEAD`, `FIGURE` and `list_names(table)`. It replaces what it defines
itself of the functions here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

from evalapp.markup import escape_latex
from evalapp.side_figures import side_value
from evalapp.stored_texts import translate_stored
from evalapp.translation import gettext as _
from scoring.boards.choices import COMPARED
from scoring.boards.registry import get_board
from scoring.boards.render.console import as_lines, chosen_line, excluded_line, plain, stale_lines
from scoring.boards.render.latex import evaluator_name, figure, lead_lines, tabular
from scoring.boards.render.page import Column, Given, Grid, arrange
from scoring.plots import drawing

TEMPLATE = "scoring/evaluation/further.html"
#: Figures that one remark names.
MOST_PLACES = 8
PARTS = ("value", "low", "high", "n", "note")
Table = Mapping[str, Any]


#: Columns of a CSV file after those of the estimate.
MORE: list[str] = []


def list_more(cell: Mapping[str, Any]) -> list[Any]:
    """Return the cells of the columns `MORE`."""
    return []


def pick_estimate(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the estimate of a cell that is shown."""
    return cell


def list_columns(table: Table) -> list[str]:
    """Return the column heads of the cells."""
    names: list[str] = get_board(table["kind"]).get_renderer("list_names")(table)
    return names


def iterate_cells(table: Table) -> list[tuple[str, str, Mapping[str, Any] | None, Mapping[str, Any]]]:
    """Return (row, column, estimate, cell) of every cell; the estimate of an evaluator with itself is None."""
    names, pick = list_columns(table), get_board(table["kind"]).get_renderer("pick_estimate")
    return [
        (row["evaluator"], name, None if cell is None else pick(cell), cell or {})
        for row in table["rows"]
        for name, cell in zip(names, row["cells"], strict=True)
    ]


def list_remarks(table: Mapping[str, Any], show: Callable[[str], str] = str) -> list[str]:
    """Return the notes of figures, each with the figures that have it; `show` translates a note for a page."""
    estimates = [
        (row, _("in %(column)s") % {"column": column}, cell) for row, column, cell, _cell in iterate_cells(table)
    ]
    estimates += [(row["evaluator"], _("overall"), row["estimate"]) for row in table["rows"] if "estimate" in row]
    notes: dict[str, list[str]] = {}
    # If the columns are evaluators too, the row identifies the figure well enough.
    is_square = list_columns(table) == [row["evaluator"] for row in table["rows"]]
    for row, column, cell in estimates:
        if cell is not None and cell["note"]:
            notes.setdefault(cell["note"], []).append(row if is_square else f"{row} {column}")
    lines = []
    for stored, places in notes.items():
        note = show(stored)
        named = list(dict.fromkeys(places))
        more = _(" and %(n)d more") % {"n": len(named) - MOST_PLACES} if len(named) > MOST_PLACES else ""
        lines.append(f"{note[0].upper()}{note[1:]}: {', '.join(named[:MOST_PLACES])}{more}.")
    return lines


def list_figures(table: Table) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every figure with a unique name, for a comparison of two tables."""
    return [
        (f"{row}, {column}", estimate) for row, column, estimate, _cell in iterate_cells(table) if estimate is not None
    ]


def list_cells(table: Table) -> tuple[list[str], list[list[Any]]]:
    """Return one CSV row per cell, so that programs need not know the columns."""
    board = get_board(table["kind"])
    more, more_of = board.get_renderer("MORE"), board.get_renderer("list_more")
    rows = [
        [row, column, *(estimate[part] for part in PARTS), *more_of(cell), table["signature"]]
        for row, column, estimate, cell in iterate_cells(table)
        if estimate is not None
    ]
    return ["evaluator", "column", *PARTS, *more, "settings"], rows


def write_latex(table: Table) -> list[str]:
    """Return a LaTeX table without intervals; trivial baselines are in italics."""
    names, pick = list_columns(table), get_board(table["kind"]).get_renderer("pick_estimate")
    rows = [
        [
            evaluator_name(row),
            *("" if cell is None else figure({**pick(cell), "low": None}, 3) for cell in row["cells"]),
        ]
        for row in table["rows"]
    ]
    return lead_lines(table) + tabular(["Evaluator", *map(escape_latex, names)], rows)


def write_lines(table: Table) -> Iterator[str]:
    """Yield a console table without intervals."""
    yield from chosen_line(table)
    yield from table.get("counted", [])
    yield from stale_lines(table)
    yield from excluded_line(table)
    names = list_columns(table)
    rows: dict[str, list[str]] = {row["evaluator"]: [] for row in table["rows"]}
    for row, _column, estimate, _cell in iterate_cells(table):
        rows[row].append("" if estimate is None else plain(estimate["value"]))
    yield from as_lines(["evaluator", *names], [[name, *cells] for name, cells in rows.items()])
    yield from list_remarks(table)
    if table["note"]:
        yield table["note"]
    yield table["signature"]


def build_context(table: Table | None, query: Any) -> dict[str, Any]:
    """Return what the template needs besides the table."""
    board = get_board(query.kind)

    def remark() -> list[str]:
        return list_remarks(table, translate_stored) if table else []

    return {
        "title": _(board.get_renderer("TITLE")),
        "lead": _(board.get_renderer("LEAD")),
        "columns": list_columns(table) if table else [],
        "coefficient_label": _(COMPARED.get(getattr(query, "coefficient", ""), "")),
        "remarks": side_value(_("The remarks on figures"), remark, []),
    }


def build_grid(table: Table, context: Mapping[str, Any], given: Given) -> Grid:
    """Return the table of the page with the columns and the order that its reader chose. A cell states n only where it
    differs from the n of its column, or of a symmetric table."""
    names, pick = list_columns(table), get_board(table["kind"]).get_renderer("pick_estimate")
    is_square = names == [row["evaluator"] for row in table["rows"]]
    whole = [row["estimate"] for row in table["rows"] if "estimate" in row]
    rows = []
    for number, row in enumerate(table["rows"]):
        estimates = [None if cell is None else pick(cell) for cell in row["cells"]]
        shown = [
            {"column": f"in:{name}", "cell": cell, "estimate": estimate, "repeats": is_square and number < place}
            for place, (name, cell, estimate) in enumerate(zip(names, row["cells"], estimates, strict=True))
        ]
        rows.append({**row, "shown": shown})
    columns = [Column("evaluator", _("Evaluator"), lambda row: row["evaluator"], is_number=False, is_kept=True)]
    if whole:
        usual = find_usual_n(whole)
        columns.append(Column("overall", _("All"), lambda row: row["estimate"]["value"], small=_describe_n(usual)))
        for row in rows:
            row["own_n"] = None if row["estimate"]["n"] == usual else row["estimate"]["n"]
    cells = [[row["shown"][place] for row in rows] for place in range(len(names))]
    usual_of_all = find_usual_n([cell["estimate"] for column in cells for cell in column]) if is_square else None
    for place, (name, column) in enumerate(zip(names, cells, strict=True)):
        usual = usual_of_all if is_square else find_usual_n([cell["estimate"] for cell in column])
        for cell in column:
            cell["own_n"] = (
                None if cell["estimate"] is None or cell["estimate"]["n"] == usual else cell["estimate"]["n"]
            )
        columns.append(
            Column(f"in:{name}", name, lambda row, place=place: _get_value(row["shown"][place]["estimate"]),  # type: ignore[misc]
                   small="" if is_square else _describe_n(usual),
                   url=f"../?{urlencode({'aspect': name})}" if table["kind"] == "aspects" else "")
        )  # fmt: skip
    estimates = [*whole, *(cell["estimate"] for column in cells for cell in column)]
    has_intervals = any(estimate is not None and estimate["low"] is not None for estimate in estimates)
    grid = arrange(columns, rows, given, default="-overall" if whole else "", has_intervals=has_intervals)
    return replace(grid, same=[*grid.same, (Column("n", "n"), usual_of_all)]) if usual_of_all is not None else grid


def _get_value(estimate: Mapping[str, Any] | None) -> float | None:
    return None if estimate is None else estimate["value"]


def find_usual_n(estimates: Sequence[Mapping[str, Any] | None]) -> int | None:
    """Return the most frequent n of estimates, the largest of several; None if there is no estimate."""
    counts = Counter(estimate["n"] for estimate in estimates if estimate is not None)
    return max(counts, key=lambda n: (counts[n], n)) if counts else None


def _describe_n(n: int | None) -> str:
    return "" if n is None else f"n {n:,}"


def plan_picture(table: Table, query: Any, project: str) -> drawing.Picture:
    """Return a heat map of the cells; of a symmetric table only one half."""
    cells = [
        {"row": row, "column": column, "value": estimate["value"]}
        for row, column, estimate, _cell in iterate_cells(table)
        if estimate is not None
    ]
    rows, columns = [row["evaluator"] for row in table["rows"]], list_columns(table)
    if rows == columns and len(rows) > 1:
        place = {name: number for number, name in enumerate(rows)}
        cells = [cell for cell in cells if place[cell["row"]] > place[cell["column"]]]
        rows, columns = rows[1:], columns[:-1]
    title = _(get_board(table["kind"]).get_renderer("TITLE"))
    name = _(COMPARED.get(getattr(query, "coefficient", ""), ""))
    valued = [cell for cell in cells if cell["value"] is not None]
    words = "; ".join(f"{c['row']}, {c['column']}: {c['value']:.2f}" for c in valued)
    finding = _describe(valued)
    paint = partial(
        drawing.draw_heat, cells, rows=rows, columns=columns, axis=name,
        title=", ".join(filter(None, (title, name))), description=f"{finding} {words[:2000]}".strip(),
    )  # fmt: skip
    return drawing.Picture(lambda width: drawing.size_heat(len(rows), len(columns), width), paint, finding)


def _describe(cells: list[dict[str, Any]]) -> str:
    """Return the highest and the lowest value with their places."""
    if not cells:
        return ""
    high, low = (pick(cells, key=lambda cell: cell["value"]) for pick in (max, min))
    return _("Highest: %(high)s (%(above).2f). Lowest: %(low)s (%(below).2f).") % {
        "high": f"{high['row']}, {high['column']}", "above": high["value"],
        "low": f"{low['row']}, {low['column']}", "below": low["value"],
    }  # fmt: skip
