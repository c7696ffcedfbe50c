"""How the leaderboard of evaluators on compared pairs is rendered."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evalapp.markup import escape_latex
from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop
from scoring.boards.choices import RIVAL
from scoring.boards.render import cells
from scoring.boards.render.cells import list_remarks
from scoring.boards.render.console import as_lines, counting_lines, interval, test_lines
from scoring.boards.render.figures import letters_caption
from scoring.boards.render.latex import evaluator_name, figure, lead_lines, tabular
from scoring.boards.render.page import (
    Column,
    Given,
    Grid,
    arrange,
    list_p_values,
    measure_width,
    place_rows,
    scale_shares,
)
from scoring.plots import drawing

TITLE = gettext_noop("Pairwise accuracy")
LEAD = gettext_noop("How often each evaluator agrees with human pairwise preferences")
TEMPLATE = "scoring/evaluation/pairs.html"
#: Name of a figure in a comparison of two tables.
FIGURE = "evaluator and figure"
#: Place of the difference from ridge, which only some tables have.
RIVAL_PLACE = 3


def list_names(table: Mapping[str, Any]) -> list[str]:
    return [column["name"] for column in table["columns"]]


def write_latex(table: Mapping[str, Any]) -> list[str]:
    """Return a LaTeX table with intervals and letters; the last row is the agreement of a rater with the others."""
    names = list_names(table)
    shown = [(evaluator_name(row), row["cells"], row["n"]) for row in table["rows"]]
    own = table["ceiling"]
    if own[0]["value"] is not None:
        shown.append((r"\midrule one rater against the others", own, own[0]["n"]))
    rows = [[name, *("" if cell is None else figure(cell, 3) for cell in cells), str(n)] for name, cells, n in shown]
    head = ["Evaluator", *(escape_latex(name.capitalize()) for name in names), "$n$"]
    lines = lead_lines(table) + tabular(head, rows)
    lines += [f"% $\\dagger$ {remark}" for remark in list_remarks(table)]
    if table["test"]["names"]:
        lines += [f"% {letters_caption(table)}", f"% {table['test']['signature']}"]
    return lines


def write_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a console table with intervals."""
    yield (
        f"Evaluators of {table['project']} on {table['n_pairs']:,} compared pairs ({table['n_decided']:,} decided, "
        f"{table['n_tied']:,} tied): {table['aspect']}, systems {table['systems']}"
    )
    yield from counting_lines(table)
    if table["n_excluded"]:
        yield f"{table['n_excluded']:,} comparisons are left out: an evaluator was trained on their groups."
    shown = [(row, row["evaluator"] + (" (sentinel)" if row["is_sentinel"] else "")) for row in table["rows"]]
    lines = [
        [name, *("" if cell is None else interval(cell) for cell in row["cells"]), row["letters"], str(row["n"])]
        for row, name in shown
    ]
    if table["ceiling"][0]["value"] is not None:
        own = ["" if cell is None else interval(cell) for cell in table["ceiling"]]
        lines.append(["one rater against the others", *own, "", str(table["ceiling"][0]["n"])])
    head = ["evaluator", *list_names(table), "letters", "n"]
    yield from as_lines(head, lines, left=(0, len(head) - 2))
    yield from test_lines(table)
    if table.get("shorter"):
        yield "Raters prefer the shorter text here, so the baseline is the shorter text."
    if table["by_lot"] is not None:
        yield f"Chance level: 0.500 on decided pairs, {table['by_lot']:.3f} on all pairs."
    if table["n_split"]:
        yield f"Pairs without a most frequent verdict, which are not counted: {table['n_split']:,}."
    if table["note"]:
        yield table["note"]
    yield table["signature"]


# ---- the page and its plot ------------------------------------------------------------------------------------


def build_context(table: Mapping[str, Any] | None, query: Any) -> dict[str, Any]:
    """Return what the template needs: each row with its figures, the first one drawn on an axis around chance level."""
    context = {**cells.build_context(table, query), "rows": []}
    if table is None:
        return context
    rows = [{**row, "decided": row["cells"][0]} for row in table["rows"]]
    scale = scale_shares(rows, "decided", reference=0.5)
    return {
        **context,
        "rows": place_rows(rows, scale, "decided"),
        "scale": scale,
        "tested_pairs": list_p_values(table),
        "has_letters": any(row["letters"] for row in rows),
        "letters_caption": letters_caption(table) if table["test"]["names"] else "",
        "has_ties": table["n_tied"] > 0,
    }


def build_grid(table: Mapping[str, Any], context: Mapping[str, Any], given: Given) -> Grid:
    """Return the table of the page with the columns and the order that its reader chose."""
    letters = _("Evaluators that share a letter are not significantly different")
    decided = _("Share of decided pairs that the evaluator orders as the raters did; equal scores count one half")
    if table["shorter"]:
        minus = _("Its share minus that of the shorter text, on pairs with scores from both")
    else:
        minus = _("Its share minus that of the longer text, on pairs with scores from both")
    ties = _(
        "Share of all pairs on which the evaluator agrees with the raters, ties included: score differences up to a "
        "threshold count as ties"
    )

    def value_of(number: int) -> Callable[[Any], Any]:
        return lambda row: row["cells"][number] and row["cells"][number]["value"]

    columns = [
        Column("rank", _("Rank"), lambda row: int(row["place"]) if row["place"] != "-" else None, is_ascending=True),
        Column("letters", _("Letters"), lambda row: row.get("letters"), is_number=False, title=letters)
        if context["has_letters"] else None,
        Column("evaluator", _("Evaluator"), lambda row: row["evaluator"], is_number=False, is_kept=True),
        Column("decided", _("Decided pairs"), value_of(0), title=decided),
        Column("interval", "95 %", lambda row: measure_width(row["decided"]), is_drawn=True),
        Column("low", _("from"), lambda row: row["decided"]["low"], css="narrow-hide", is_detail=True),
        Column("high", _("to"), lambda row: row["decided"]["high"], css="narrow-hide", is_detail=True),
        Column("minus", _("minus %(baseline)s") % {"baseline": table["baseline"]}, value_of(1), title=minus),
        Column("ridge", _("minus %(baseline)s") % {"baseline": RIVAL}, value_of(RIVAL_PLACE),
               title=_("Its share minus that of ridge, on pairs with scores from both"))
        if len(table["columns"]) > RIVAL_PLACE else None,
        Column("all", _("All pairs"), value_of(2), title=ties) if context["has_ties"] else None,
        Column("n", "n", lambda row: row["n"] or None,
               is_folded=not any(row["n"] and row.get("n_missing") for row in context["rows"])),
        Column("signature", _("Signature"), lambda row: row.get("short_signature"), is_number=False),
    ]  # fmt: skip
    return arrange(
        [column for column in columns if column], context["rows"], given,
        default="-decided", has_intervals=any(row["decided"]["low"] is not None for row in context["rows"]),
    )  # fmt: skip


def plan_picture(table: Mapping[str, Any], query: Any, project: str) -> drawing.Picture:
    """Return a forest plot of the accuracy on decided pairs, with chance level and the accuracy of a single rater."""
    rows = [
        {
            "label": row["evaluator"],
            "kind": _("trivial baseline") if row["is_sentinel"] else _("metric"),
            "letters": row["letters"],
            **row["cells"][0],
        }
        for row in table["rows"]
    ]
    marks, own = [drawing.Mark(0.5, _("chance"))], table["ceiling"][0]
    if own["value"] is not None:
        text = _("single rater %(value).2f") % {"value": own["value"]}
        marks.append(drawing.Mark(own["value"], text, own["low"], own["high"]))
    finding, first = "", next((row for row in rows if row["value"] is not None), None)
    if first:
        finding = _("%(name)s is first: it orders %(value)s of the decided pairs as the raters did.") % {
            "name": first["label"], "value": drawing.name_estimate(first)}  # fmt: skip
    return drawing.plan_forest(
        rows, title=_("Pairwise accuracy in %(project)s, %(aspect)s") % {"project": project, "aspect": table["aspect"]},
        finding=finding, axis=_("accuracy on decided pairs, 95 %"), zero=False, marks=marks, main=_("metric"),
    )  # fmt: skip
