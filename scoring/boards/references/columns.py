"""How the leaderboard of evaluators by reference set is rendered. The LaTeX table is like Table 3 of Gao et al.
(2021)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from evalapp.markup import escape_latex
from evalapp.translation import gettext as _
from scoring.boards.choices import COEFFICIENTS
from scoring.boards.render.console import as_lines, chosen_line, excluded_line, interval, plain, stale_lines
from scoring.boards.render.latex import tabular
from scoring.boards.render.page import Column, Given, Grid, arrange
from scoring.plots import drawing

PARTS = ("value", "low", "high")
TEMPLATE = "scoring/references/enhanced.html"
#: Name of a figure in a comparison of two tables.
FIGURE = "evaluator and reference set"


def list_cells(table: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return one CSV row per evaluator and set, with differences from the first set."""
    sizes = {row["name"]: row for row in table["sets"]}
    head = ["evaluator", "references", "origin", "per_item", "n"]
    head += [f"{name}_{part}" for name in COEFFICIENTS for part in PARTS]
    head += [f"difference_{part}" for part in PARTS] + ["p", "p_holm", "p_williams", "signature", "settings"]
    rows = []
    for row in table["rows"]:
        to_first = {d["a"]: d for d in row["differences"] if d["b"] == table["baseline"]}
        for name, cell in row["cells"].items():
            d = to_first.get(name, {})
            values = [row["evaluator"], name, sizes[name]["origin"], sizes[name]["per_item"], cell["n"]]
            values += [cell[c][part] for c in COEFFICIENTS for part in PARTS] + [d.get(part) for part in PARTS]
            values += [d.get("p"), d.get("p_holm"), d.get("williams"), cell["signature"], table["signature"]]
            rows.append(values)
    return head, rows


def write_latex(table: Mapping[str, Any]) -> list[str]:
    """Return a LaTeX table of Pearson / Kendall by set; a star means p < .05 after Holm for the difference from the
    first."""
    names = [row["name"] for row in table["sets"]]
    lines = [f"% {table['signature']}", *(f"% {row['name']}: {row['origin']}" for row in table["sets"])]
    lines += [f"% Out of date: {row['evaluator']}: {row['reason']}" for row in table.get("stale", [])]
    rows = []
    for row in table["rows"]:
        starred = {d["a"] for d in row["differences"] if d["b"] == table["baseline"] and (d["p_holm"] or 1) < 0.05}
        cells = [_pair(row["cells"][name], name in starred) for name in names]
        rows.append([escape_latex(row["evaluator"]), *cells])
    return lines + tabular(["Evaluator", *map(escape_latex, names)], rows)


def _pair(cell: Mapping[str, Any], starred: bool) -> str:
    values = [cell[name]["value"] for name in ("pearson", "kendall")]
    if None in values:
        return "--"
    return "$" + " / ".join(f"{value:.3f}" for value in values) + ("^{*}" if starred else "") + "$"


def write_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a console table by evaluator and set, with differences from the first set."""
    yield f"Evaluators of {table['project']} by reference set: {table['aspect']}, {table['level']} level"
    if table["n_simulated"]:
        yield "Figures include simulated ratings."
    yield from chosen_line(table)
    yield from table.get("counted", [])
    yield from stale_lines(table)
    yield from excluded_line(table)
    sizes = {row["name"]: row["per_item"] for row in table["sets"]}
    lines = []
    for row in table["rows"]:
        to_first = {d["a"]: d for d in row["differences"] if d["b"] == table["baseline"]}
        for name, cell in row["cells"].items():
            size, shown = sizes.get(name), to_first.get(name)
            tested = ["", "", "", ""]
            if shown is not None:
                tested = [interval(shown), *(plain(shown[part]) for part in ("p", "p_holm", "williams"))]
            figures = [*(interval(cell[c]) for c in ("pearson", "kendall")), str(cell["n"])]
            lines.append([row["evaluator"], name, "-" if size is None else f"{size:.1f}", *figures, *tested])
    head = ["evaluator", "references", "per item", "pearson", "kendall", "n"]
    head += [f"minus {table['baseline']}", "p", "p Holm", "p Williams"]
    yield from as_lines(head, lines, left=(0, 1))
    if table["note"]:
        yield table["note"]
    yield table["signature"]


def list_figures(table: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every coefficient by evaluator and reference set, for a comparison of two tables."""
    cells = ((row["evaluator"], name, cell["pearson"]) for row in table["rows"] for name, cell in row["cells"].items())
    return [(f"{evaluator}, {name}", estimate) for evaluator, name, estimate in cells]


def plan_picture(table: Mapping[str, Any], query: Any, project: str) -> drawing.Picture:
    """Return a plot of the Pearson correlation of each evaluator with each reference set."""
    series, names = [row["name"] for row in table["sets"]], [row["evaluator"] for row in table["rows"]]
    rows = [
        {"name": row["evaluator"], "series": name, **{part: row["cells"][name]["pearson"][part] for part in PARTS}}
        for row in table["rows"]
        for name in series
    ]
    finding = _describe(table, [row for row in rows if row["value"] is not None])
    words = "; ".join(f"{row['name']}, {row['series']} {row['value']:.3f}" for row in rows if row["value"] is not None)
    paint = partial(
        drawing.draw_groups, rows, names=names, series=series, axis=_("Pearson correlation with human ratings, 95 %"),
        title=_("Evaluators by reference set, %(aspect)s") % {"aspect": table["aspect"]},
        description=f"{finding} {words[:2000]}".strip(),
    )  # fmt: skip
    return drawing.Picture(lambda width: drawing.size_groups(len(names), len(series), width), paint, finding)


def _describe(table: Mapping[str, Any], rows: list[dict[str, Any]]) -> str:
    """Return the highest correlation, and how many evaluators are higher with another set than with the first."""
    if not rows:
        return ""
    first = max(rows, key=lambda row: row["value"])
    text = _("Highest: %(name)s with %(set)s, %(value)s.")
    values = {"name": first["name"], "set": first["series"], "value": drawing.name_estimate(first)}
    sentences = [text % values]
    for other in [row["name"] for row in table["sets"] if row["name"] != table["baseline"]]:
        gains = [d["value"] for row in table["rows"] for d in row["differences"]
                 if d["a"] == other and d["b"] == table["baseline"] and d["value"] is not None]  # fmt: skip
        if gains:
            text = _("With %(set)s, %(n)d of %(all)d evaluators correlate more than with %(first)s.")
            counts = {"n": sum(gain > 0 for gain in gains), "all": len(gains)}
            sentences.append(text % {"set": other, "first": table["baseline"], **counts})
    return " ".join(sentences)


def build_context(table: Mapping[str, Any] | None, query: Any) -> dict[str, Any]:
    """Return rows with their cells in the order of the sets, each with its difference to the first set."""
    if table is None:
        return {"rows": []}
    rows = []
    for row in table["rows"]:
        to_first = {d["a"]: d for d in row["differences"] if d["b"] == table["baseline"]}
        best = max((cell["pearson"]["value"] or -2 for cell in row["cells"].values()), default=-2)
        cells = [(used["name"], row["cells"][used["name"]]) for used in table["sets"]]
        parts = [
            {
                **cell,
                "set": name,
                "column": f"in:{name}",
                "difference": to_first.get(name),
                "is_best": cell["pearson"]["value"] == best,
            }
            for name, cell in cells
        ]
        rows.append({**row, "cells": parts})
    return {"rows": rows}


def build_grid(table: Mapping[str, Any], context: Mapping[str, Any], given: Given) -> Grid:
    """Return the table of the page with the columns and the order that its reader chose."""
    columns = [
        Column("evaluator", _("Evaluator"), lambda row: row["evaluator"], is_number=False, is_kept=True),
        Column("n", "n", lambda row: row["n"], is_folded=True),
    ]
    for place, used in enumerate(table["sets"]):
        text = _("%(origin)s; %(per_item)s per item")
        per_item = "-" if used["per_item"] is None else f"{used['per_item']:.1f}"
        columns.append(
            Column(f"in:{used['name']}", used["name"], lambda row, place=place: row["cells"][place]["pearson"]["value"],  # type: ignore[misc]
                   small=text % {"origin": used["origin"], "per_item": per_item},
                   badge=_("holds outputs") if used.get("holds_judged_outputs") else "",
                   url=f"../{quote(used['name'])}/")
        )  # fmt: skip
    differences = [{**d, "evaluator": row["evaluator"]} for row in table["rows"] for d in row["differences"]]
    has_intervals = any(d["low"] is not None for d in differences)
    grid = arrange(columns, context["rows"], given, has_intervals=has_intervals)
    return replace(grid, further={"pairs": _arrange_pairs(differences, given)})


def _arrange_pairs(differences: list[dict[str, Any]], given: Given) -> Grid:
    """Return the table of the differences between all pairs of sets."""
    columns = [
        Column("evaluator", _("Evaluator"), lambda row: row["evaluator"], is_number=False),
        Column("pair", _("Pair"), lambda row: f"{row['a']} {row['b']}", is_number=False),
        Column("value", _("Difference"), lambda row: row["value"]),
        Column("low", _("from"), lambda row: row["low"]),
        Column("high", _("to"), lambda row: row["high"]),
        Column("p", "p", lambda row: row["p"], is_ascending=True),
        Column("williams", _("Williams"), lambda row: row["williams"], is_ascending=True),
    ]
    return arrange(columns, differences, given, name="pairs")
