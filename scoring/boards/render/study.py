"""Render the tables of a study as text, CSV, JSON, LaTeX and as a picture."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from evalapp.markup import escape_latex, guard_formula, join_latex
from evalapp.number_text import show_figure
from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop
from scoring.boards.render.console import as_lines
from scoring.boards.render.latex import tabular
from scoring.plots import drawing

#: Names of columns and of rows that are no evaluators or systems.
FIGURES = {
    "spearman": gettext_noop("Spearman"),
    "pearson": gettext_noop("Pearson"),
    "kendall": gettext_noop("Kendall"),
    "system_spearman": gettext_noop("Spearman, systems"),
    "system_pearson": gettext_noop("Pearson, systems"),
    "decided": gettext_noop("decided pairs right"),
    "coverage": gettext_noop("Decides"),
    "right_if_called": gettext_noop("Right if it decides"),
    "accuracy": gettext_noop("accuracy"),
    "f1": gettext_noop("F1"),
    "mcc": gettext_noop("MCC"),
    "auroc": gettext_noop("AUROC"),
    "r2": gettext_noop("R²"),
    "ceiling": gettext_noop("highest R²"),
    "m1_spearman": gettext_noop("Spearman with M1"),
    "mse": gettext_noop("MSE"),
    "constant": gettext_noop("MSE of the mean"),
    "gold": gettext_noop("gold"),
    "predicted": gettext_noop("predicted"),
    "prefers_remove": gettext_noop("preferred to: one removed"),
    "prefers_add": gettext_noop("preferred to: foreign added"),
    "prefers_replace": gettext_noop("preferred to: one replaced"),
    "delta": gettext_noop("Δ"),
    "delta_sd": gettext_noop("SD over contexts"),
    "below": gettext_noop("share that falls"),
    "steps_wins": gettext_noop("checkpoints: share of best"),
    "steps_human": gettext_noop("checkpoints: human score"),
    "variants_wins": gettext_noop("variants: share of best"),
    "variants_human": gettext_noop("variants: human score"),
    "MGE": gettext_noop("by machines"),
    "HWE": gettext_noop("written freely"),
    "LDHWE": gettext_noop("in other words"),
    "HWEBQ": gettext_noop("better"),
    "AE": gettext_noop("wrong"),
    "ground_truth": gettext_noop("true reply"),
    "back_translation": gettext_noop("translated there and back"),
    "rand_utt": gettext_noop("reply of another dialogue"),
    "model_false": gettext_noop("reply of a model"),
    "rand_model": gettext_noop("reply of a model to another context"),
    "rand_back": gettext_noop("another reply, translated"),
    "word_drop": gettext_noop("words dropped"),
    "word_order": gettext_noop("words shuffled"),
    "word_repeat": gettext_noop("words repeated"),
    "at random": "at random",
    "constant class": "constant class",
}
#: The column that the picture shows first: the foremost figure of the paper, by evaluator.
FOREMOST = {"shared-bert": "f1", "comparative": "system_spearman", "perception": "system_pearson", "ream": "r2"}
_HUMAN, _OVER, _M1 = "human:", "over_rival:", "m1:"
DIGITS = 3
ALPHA = 0.05


def name_label(label: str) -> str:
    """Return the name of a row or column for people; names of evaluators and systems are unchanged."""
    from scoring.ml.studies.kinds import LABELS

    if label in LABELS:
        return _(label)
    if label.startswith(_HUMAN):
        return _("human: %(aspect)s") % {"aspect": label.removeprefix(_HUMAN)}
    if label.startswith(_M1):
        return f"M1: {label.removeprefix(_M1)}"
    if label.startswith(_OVER):
        return _("%(figure)s, over ridge") % {"figure": name_label(label.removeprefix(_OVER))}
    return _(FIGURES[label]) if label in FIGURES else label


def name_kind(name: str) -> str:
    """Return the title of a kind of study."""
    from scoring.ml.studies.kinds import get_kind

    return _(get_kind(name).title)


def is_starred(cell: Mapping[str, Any]) -> bool:
    """Return whether a figure differs significantly from that of the first row, over seeds and after Holm."""
    p = (cell.get("difference") or {}).get("p_holm")
    return p is not None and p < ALPHA


def is_unlike_rival(cell: Mapping[str, Any]) -> bool:
    """Return whether a difference from the rival is significant after Holm."""
    return cell.get("p_holm") is not None and cell["p_holm"] < ALPHA


def list_columns(result: Mapping[str, Any]) -> list[str]:
    """Return the columns that any table of a study has."""
    return list(dict.fromkeys(column for table in result["tables"] for column in table["columns"]))


def choose_column(result: Mapping[str, Any], wanted: str = "") -> str:
    """Return the column of the picture: the wanted one, or the foremost; "" if there is none."""
    columns = list_columns(result)
    names = result["evaluators"]
    foremost = FOREMOST.get(names[0], "") if len(names) == 1 else ""
    return next((name for name in (wanted, foremost, *columns) if name in columns), "")


def show_cell(cell: Mapping[str, Any] | None) -> str:
    """Return a figure with its standard deviation over seeds, or its interval over groups, as text."""
    if cell is None or cell["value"] is None:
        return "-"
    text = (
        show_figure(cell["value"], DIGITS) + ("*" if is_starred(cell) else "") + ("†" if is_unlike_rival(cell) else "")
    )
    if cell["sd"] is not None:
        return f"{text} ± {show_figure(cell['sd'], DIGITS)}"
    if cell["low"] is None:
        return text
    return f"{text} [{show_figure(cell['low'], DIGITS)}, {show_figure(cell['high'], DIGITS)}]"


def show_test(name: str, test: Mapping[str, Any]) -> str:
    """Return an analysis of variance as text."""
    if test["p"] is None:
        return f"{name}: {test['note']}"
    f = "∞" if test["f"] is None else f"{test['f']:.2f}"
    p = "< .001" if test["p"] < 0.001 else f"= {test['p']:.3f}"
    return f"{name}: F({test['df_between']}, {test['df_within']}) = {f}, p {p}"


def list_remarks(result: Mapping[str, Any]) -> list[str]:
    """Return what a reader of the tables must know: parts, seeds, marks, what is left out, simulated judgements."""
    test = result["counts"]["test"]
    values = {"items": f"{test['items']:,}", "groups": f"{test['groups']:,}", "share": result["held_out"]}
    remarks = [_("Measured on %(items)s items of %(groups)s groups (%(share)d %%) that no training has read.") % values]
    if len(result["seeds"]) > 1:
        seeds = ", ".join(map(str, result["seeds"]))
        text = _(
            "Mean ± standard deviation over the seeds %(seeds)s; one split for all. Bars of the figure: 95 %% over "
            "seeds, or over groups of items in rows without ±."
        )
        remarks.append(text % {"seeds": seeds})
    elif result["seeds"]:
        remarks.append(_("One seed; brackets: 95 % over groups of items."))
    cells = [cell for table in result["tables"] for row in table["rows"] for cell in row["cells"].values()]
    if any(map(is_starred, cells)):
        remarks.append(_("* differs from the first row: paired t-test over seeds, p < .05 after Holm’s correction."))
    if "m1_spearman" in list_columns(result):
        text = _(
            "M1: share of judgements that a system is at least as good as the reference. Spearman with M1: mean over "
            "seeds; these systems, 95 % over groups of items."
        )
        remarks.append(text)
    if any(column.startswith(_OVER) for column in list_columns(result)):
        text = _(
            "Over ridge: difference from ridge, a regression on frozen vectors that is trained in seconds; mean over "
            "seeds, 95 % over groups of items. †: p < .05 after Holm’s correction over the rows."
        )
        remarks.append(text)
    remarks += [
        _("Left out: %(label)s. %(reason)s") % {"label": name_label(label), "reason": reason}
        for label, reason in result["left_out"].items()
    ]
    if result["n_simulated"]:
        remarks.append(_("These figures include simulated judgements."))
    return remarks


def as_text(result: Mapping[str, Any]) -> str:
    """Return the tables for a console."""
    lines: list[str] = []
    for table in result["tables"]:
        head = [table["name"], *map(name_label, table["columns"])]
        rows = [
            [name_label(row["label"]), *(show_cell(row["cells"].get(column)) for column in table["columns"])]
            for row in table["rows"]
        ]
        lines += [*as_lines(head, rows), *_list_tests(table), ""]
    return "\n".join([*lines, *list_remarks(result)])


def _list_tests(table: Mapping[str, Any]) -> list[str]:
    one_way, blocked = _("One-way ANOVA"), _("with seeds as blocks")
    return [
        f"{name_label(column)}. {show_test(one_way, tests['one_way'])}; {show_test(blocked, tests['blocked'])}"
        for column, tests in table["tests"].items()
    ]


def as_csv(result: Mapping[str, Any]) -> str:
    """Return one line for each figure with full precision; undefined figures are empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    figures = ["value", "sd", "low", "high", "n"]
    compared = ["difference", "difference_low", "difference_high", "p", "p_holm"]
    writer.writerow(["part", "row", "figure", *figures, "over", "values", *compared, "note"])
    for table in result["tables"]:
        for row in table["rows"]:
            for column, cell in row["cells"].items():
                other = cell.get("difference") or {}
                tests = other or cell
                values = " ".join("nan" if value is None else f"{value:.6g}" for value in cell["values"])
                cells = [table["name"], row["label"], column, *(cell[name] for name in figures), cell["over"], values]
                cells += [other.get(name) for name in ("value", "low", "high")]
                cells += [tests.get(name) for name in ("p", "p_holm")]
                writer.writerow([guard_formula(value) for value in [*cells, cell["note"]]])
    return buffer.getvalue()


def as_json(result: Mapping[str, Any]) -> str:
    """Return the whole result."""
    return json.dumps(result, ensure_ascii=False, indent=1, allow_nan=False)


def as_latex(result: Mapping[str, Any]) -> str:
    """Return a table for `booktabs` for each part, with remarks, tests and signatures as comments."""
    lines: list[str] = []
    for table in result["tables"]:
        title = " · ".join(filter(None, (name_kind(result["study"]), table["name"])))
        lines += [f"% {title}", *(f"% {line}" for line in _list_tests(table))]
        head = ["", *(escape_latex(name_label(column)) for column in table["columns"])]
        rows = [
            [escape_latex(name_label(row["label"])), *(_latex_cell(row["cells"].get(c)) for c in table["columns"])]
            for row in table["rows"]
        ]
        lines += [*tabular(head, rows), ""]
    lines += [f"% {remark}" for remark in list_remarks(result)]
    lines += [f"% {label}: {signature}" for label, signature in result["signatures"].items()]
    return join_latex([*lines, ""])


def _latex_cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None or cell["value"] is None:
        return "--"
    marks = ("*" if is_starred(cell) else "") + (r"\dagger" if is_unlike_rival(cell) else "")
    value = f"${cell['value']:.{DIGITS}f}" + (f"^{{{marks}}}$" if marks else "$")
    if cell["sd"] is not None:
        return rf"{value} {{\small $\pm {cell['sd']:.{DIGITS}f}$}}"
    if cell["low"] is None:
        return value
    return rf"{value} {{\small $[{cell['low']:.{DIGITS}f}, {cell['high']:.{DIGITS}f}]$}}"


#: File extension -> (function that writes the file, media type).
FORMATS: dict[str, tuple[Callable[[Mapping[str, Any]], str], str]] = {
    "csv": (as_csv, "text/csv; charset=utf-8"),
    "json": (as_json, "application/json"),
    "tex": (as_latex, "application/x-tex; charset=utf-8"),
}


def plan_picture(result: Mapping[str, Any], wanted: str = "") -> drawing.Picture | None:
    """Return the picture of a column over all parts, or of the reliabilities by size; None without any figure."""
    from scoring.ml.studies.kinds import get_kind

    title = name_kind(result["study"])
    if get_kind(result["study"]).figure == "lines":
        return _plan_lines(result, title)
    column = choose_column(result, wanted)
    rows = [
        {"name": name_label(row["label"]), "series": table["name"] or name_label(column), **row["cells"][column]}
        for table in result["tables"]
        for row in table["rows"]
        if column in row["cells"]
    ]
    rows = [{key: row[key] for key in ("name", "series", "value", "low", "high")} for row in rows]
    shown = [row for row in rows if row["value"] is not None]
    if not shown:
        return None
    names = list(dict.fromkeys(row["name"] for row in shown))
    series = list(dict.fromkeys(row["series"] for row in shown))
    best = max(shown, key=lambda row: row["value"])
    finding = _("%(column)s: highest for %(name)s (%(value).3f).")
    finding %= {"column": name_label(column), "name": best["name"], "value": best["value"]}
    paint = partial(
        drawing.draw_groups, shown, names=names, series=series, title=f"{title}: {name_label(column)}",
        description=finding, axis=name_label(column),
    )  # fmt: skip
    return drawing.Picture(lambda width: drawing.size_groups(len(names), len(series), width), paint, finding)


def _plan_lines(result: Mapping[str, Any], title: str) -> drawing.Picture | None:
    lines = []
    for table in result["tables"]:
        # Results of earlier versions have no noise ceiling.
        for column in ("gold", "predicted", "ceiling"):
            points = [
                {"x": int(row["label"]), **{end: row["cells"][column][end] for end in ("value", "low", "high")}}
                for row in table["rows"]
                if column in row["cells"] and row["cells"][column]["value"] is not None
            ]
            name = name_label(column) if len(result["tables"]) == 1 else f"{table['name']}, {name_label(column)}"
            if points:
                lines.append({"name": name, "points": points})
    if not lines:
        return None
    finding = _("Reliability of reference sets by size, measured and predicted.")
    if "ceiling" in list_columns(result):
        noise = _(
            "The line “%(name)s” is what an error-free prediction would reach, because the measured reliability is "
            "partly chance."
        )
        finding = f"{finding} {noise % {'name': name_label('ceiling')}}"
    paint = partial(
        drawing.draw_lines, lines, title=title, description=finding, axes=(_("references"), _("reliability"))
    )
    return drawing.Picture(lambda width: drawing.size_lines(len(lines), width), paint, finding)
