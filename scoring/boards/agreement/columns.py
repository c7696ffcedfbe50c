"""How the tables of inter-annotator agreement are rendered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalapp.markup import escape_latex
from evalapp.number_text import show_figure
from evalapp.plot_style import HALF
from evalapp.side_figures import failure_sentence
from evalapp.translation import gettext as _
from evalapp.translation import ngettext
from scoring.boards.choices import JUDGED, RATINGS
from scoring.boards.render.console import as_lines, filter_line, interval
from scoring.boards.render.latex import figure, tabular
from scoring.plots import drawing

#: Name of a figure in a comparison of two tables.
FIGURE = "coefficient"
COUNTS = ("n_units", "n_shared", "n_raters", "n_judgements")


def list_cells(table: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return one CSV row per coefficient, of all aspects or of the aspect of the table."""
    about = ("aspect", "judged", "source", "scale", *COUNTS)
    figures = ("name", "value", "low", "high", "n", "note")
    rows = [
        [*(line.get(name, "") for name in about), *(figure[name] for name in figures), table["signature"]]
        for line in _lines(table)
        for figure in line["coefficients"]
    ]
    return [*about, "coefficient", *figures[1:], "signature"], rows


def write_latex(table: Mapping[str, Any]) -> list[str]:
    """Return a LaTeX table with a column for each coefficient."""
    lines = _lines(table)
    names = [(one["name"], one["label"]) for one in lines[0]["coefficients"]] if lines else []
    for line in lines:
        names += [(f["name"], f["label"]) for f in line["coefficients"] if f["name"] not in {name for name, _ in names}]
    rows = []
    for line in lines:
        by_name = {one["name"]: one for one in line["coefficients"]}
        what = escape_latex(f"{line['aspect']}, {line['source'] or JUDGED[line['judged']].lower()}")
        cells = [figure({**by_name[name], "note": ""}, 3) if name in by_name else "--" for name, _ in names]
        rows.append([what, *cells, str(line["n_units"]), str(line["n_raters"])])
    head = ["Aspect", *(escape_latex(label.split(" (")[0]) for _, label in names), "Units", "Raters"]
    lead = [f"% {table['signature']}"]
    if table["n_simulated"]:
        lead.append("% Figures include simulated judgements.")
    return lead + tabular(head, rows)


def _lines(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not table["aspect"]:
        return list(table["rows"])
    whole = {name: table.get(name, "") for name in ("aspect", "judged", "scale", *COUNTS)}
    return [{**whole, "source": table["campaign"], "coefficients": table["rows"]}]


def write_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield an overview of all aspects, or coefficients, answers and raters of an aspect."""
    of = f" in {table['campaign']}" if table["campaign"] else ""
    yield f"Agreement in {table['project']}{of}" + (f": {table['aspect']}" if table["aspect"] else "")
    if table.get("filter"):
        yield filter_line(table["filter"])
    if table["n_simulated"]:
        yield "Figures include simulated judgements."
    if table["ratings"] != "raw":
        yield f"Ratings: {RATINGS[table['ratings']]}"
    if table["note"]:
        yield table["note"]
    if sentence := failure_sentence(table.get("failed", ())):
        yield sentence
    if table["rows"]:
        yield from _detail_lines(table) if table["aspect"] else _overview_lines(table)
    yield table["signature"]


def _overview_lines(table: Mapping[str, Any]) -> list[str]:
    names = list({f["name"]: f["label"] for row in table["rows"] for f in row["coefficients"]})
    lines = []
    for row in table["rows"]:
        by_name = {f["name"]: f for f in row["coefficients"]}
        what = [row["aspect"], row["source"] or JUDGED[row["judged"]].lower()]
        figures = [interval(by_name[name]) if name in by_name else "-" for name in names]
        counts = [str(row[name]) for name in COUNTS]
        reasons = [by_name["alpha"]["note"]] if by_name["alpha"]["value"] is None else [""]
        lines.append([*what, *figures, *counts, *reasons])
    head = ["aspect", "judged in", *names, "units", "shared", "raters", "judgements", ""]
    return as_lines(head, lines, left=(0, 1, len(head) - 1))


def _detail_lines(table: Mapping[str, Any]) -> Iterator[str]:
    yield f"{table['n_judgements']:,} judgements of {table['n_units']:,} units by {table['n_raters']:,} raters"
    rows = [[row["label"], interval(row), str(row["n"]), row["note"]] for row in table["rows"]]
    yield from as_lines(["coefficient", "value", "n", ""], rows, left=(0, 3))
    yield "answers: " + ", ".join(f"{row['value']}: {100 * row['share']:.0f} %" for row in table["prevalence"])
    yield from table["notes"]
    raters = table.get("raters", [])
    if raters:
        head = ["rater", "judged", *(column.label.lower() for column in list_used_columns(raters)), "reason to review"]
        lines = [
            [
                row["rater"],
                str(row["n"]),
                *(cell["text"] for cell in format_cells(row, raters)),
                " ".join(row["reasons"]),
            ]
            for row in raters
        ]
        yield from as_lines(head, lines, left=(0, len(head) - 1))


def list_figures(table: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every coefficient by row and label, for a comparison of two tables."""
    return [
        (f"{_name_line(row)}{figure['label']}", figure)
        for row in table["rows"]
        for figure in row.get("coefficients", [row])
    ]


def _name_line(row: Mapping[str, Any]) -> str:
    if "coefficients" not in row:
        return ""
    return f"{row['aspect']}, {row['source'] or JUDGED[row['judged']].lower()}: "


def plan_picture(table: Mapping[str, Any], query: Any, project: str) -> drawing.Picture:
    """Return a forest plot of alpha for every aspect and way of judging."""
    rows = [{**row["coefficients"][0], "label": f"{_name_line(row)[:-2]}"} for row in table["rows"]]
    valued = sorted((row for row in rows if row["value"] is not None), key=lambda row: -row["value"])
    finding = ""
    if valued:
        parts = {"high": valued[0]["label"], "above": drawing.name_estimate(valued[0], 2)}
        finding = _("Highest agreement: %(high)s, alpha %(above)s.") % parts
    if len(valued) > 1:
        parts = {"low": valued[-1]["label"], "below": drawing.name_estimate(valued[-1], 2)}
        finding += " " + _("Lowest: %(low)s, %(below)s.") % parts
    return drawing.plan_forest(
        rows, finding=finding, title=_("Agreement in %(project)s") % {"project": project}, zero=True, digits=2,
        axis=_("Krippendorff’s alpha, 95 %"),
    )  # fmt: skip


#: The maximum number of ratings per unit in the plot of their reliability.
MOST_RATINGS = 10
#: A reliability that is enough to compare groups (Nunnally 1978).
ENOUGH = 0.8


def plan_growth(table: Mapping[str, Any] | None) -> drawing.Picture | None:
    """Return the plot of the reliability of the mean rating of a unit by number of ratings, from the reliability of a
    single rating, ICC(1); None if that is not defined."""
    from evalapp.stats.agreement.icc import step_up

    single = next((row for row in (table or {"rows": []})["rows"] if row.get("name") == "icc_1"), None)
    if table is None or single is None or single["value"] is None:
        return None
    ends = {end: single["value"] if single[end] is None else single[end] for end in ("value", "low", "high")}
    points = [{"x": n, **{end: step_up(value, n) for end, value in ends.items()}} for n in range(1, MOST_RATINGS + 1)]
    text = _("The reliability of a single rating of %(aspect)s is %(one)s.")
    sentences = [text % {"aspect": table["aspect"], "one": drawing.name_estimate(single, 2)}]
    here = table["n_judgements"] / table["n_units"]
    enough = next((point["x"] for point in points if point["value"] >= ENOUGH), None)
    if single["value"] <= 0:
        sentences.append(_("Further ratings like these do not make their mean reliable."))
    else:
        text = _("The mean of the %(n).1f ratings that a unit has here: %(value).3f.")
        sentences.append(text % {"n": here, "value": step_up(single["value"], here)})
    if enough:
        text = ngettext(
            "%(enough).1f needs %(n)d rating of each unit.",
            "%(enough).1f needs %(n)d ratings of each unit.",
            int(enough),
        )
        sentences.append(text % {"enough": ENOUGH, "n": enough})
    finding = " ".join(sentences)
    paint = partial(
        drawing.draw_lines, [{"name": table["aspect"], "points": points}],
        title=_("Reliability of mean ratings of %(aspect)s") % {"aspect": table["aspect"]}, description=finding,
        axes=(_("ratings per unit"), _("reliability of their mean, 95 %")),
    )  # fmt: skip
    return drawing.Picture(partial(drawing.size_lines, 1), paint, finding, HALF)


# ---- the table of raters ------------------------------------------------------------

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column; `part` is a member of a rater's report. Columns without figures are left out."""

    part: str
    label: str
    help: str
    text: Callable[[float], str]


def _signed(value: float) -> str:
    return show_figure(value, 2, sign=True)


def _plain(value: float) -> str:
    return show_figure(value, 2)


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


COLUMNS = (
    Column("bias", "Bias", "Mean difference from the other raters of the same units, in points of the scale.", _signed),
    Column("spread", "Spread", "Standard deviation of this rater's ratings.", _plain),
    Column("seconds", "Time", "Median seconds per judgement.", _seconds),
    Column("self_consistency", "Repeats", "Share of repeated units with the same answer.", _share),
    Column("control_failures", "Controls failed", "Share of control items with an unexpected answer.", _share),
    Column("agreement", "Correlation", "Correlation with the mean of the other raters of the same units.", _plain),
    Column("drift", "Drift", "Bias in the second half of the judgements minus that in the first half.", _signed),
)


def list_used_columns(rows: Sequence[Row]) -> list[Column]:
    return [column for column in COLUMNS if any(_value(row, column.part) is not None for row in rows)]


def format_cells(row: Row, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the cells of a rater; undefined ones are a dash with the reason as note."""
    cells = []
    for column in list_used_columns(rows):
        result = row.get(column.part) or {}
        value = _value(row, column.part)
        text = "-" if value is None else column.text(value)
        cells.append({"part": column.part, "text": text, "value": value, "note": result.get("note", "")})
    return cells


def _value(row: Row, part: str) -> float | None:
    result = row.get(part)
    value = result.get("value") if result else None
    return None if value is None else float(value)
