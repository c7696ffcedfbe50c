"""Tables of agreement as files: CSV, and LaTeX for a paper (booktabs)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from evalapp.markup import escape_latex, guard_formula, join_latex

from .selectors.leaderboards import JUDGED

COUNTS = ("n_units", "n_shared", "n_raters", "n_judgements")


def as_csv(table: Mapping[str, Any]) -> str:
    """One row per coefficient of every line (all aspects), or of the aspect that the table is about."""
    head = [
        "aspect",
        "judged",
        "source",
        "scale",
        *COUNTS,
        "coefficient",
        "value",
        "low",
        "high",
        "n",
        "note",
        "signature",
    ]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    for line in _lines(table):
        for found in line["coefficients"]:
            cells = [line.get(name, "") for name in ("aspect", "judged", "source", "scale", *COUNTS)]
            figures = [found[name] for name in ("name", "value", "low", "high", "n", "note")]
            writer.writerow([guard_formula(cell) for cell in (*cells, *figures, table["signature"])])
    return buffer.getvalue()


def as_latex(table: Mapping[str, Any]) -> str:
    lines = _lines(table)
    names = [(found["name"], found["label"]) for found in lines[0]["coefficients"]] if lines else []
    for line in lines:
        names += [(f["name"], f["label"]) for f in line["coefficients"] if f["name"] not in {name for name, _ in names}]
    rows = []
    for line in lines:
        by_name = {found["name"]: found for found in line["coefficients"]}
        what = escape_latex(f"{line['aspect']}, {line['source'] or JUDGED[line['judged']].lower()}")
        cells = [_figure(by_name.get(name)) for name, _ in names]
        rows.append(" & ".join([what, *cells, str(line["n_units"]), str(line["n_raters"])]) + r" \\")
    head = (
        " & ".join(["Aspect", *(escape_latex(label.split(" (")[0]) for _, label in names), "Units", "Raters"]) + r" \\"
    )
    columns = "l" + "r" * (len(names) + 2)
    lead = [f"% {table['signature']}"]
    if table["n_simulated"]:
        lead.append("% Simulated judgements are among these figures.")
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return join_latex([*lead, *body, ""])


def _lines(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not table["aspect"]:
        return list(table["rows"])
    whole = {name: table.get(name, "") for name in ("aspect", "judged", "scale", *COUNTS)}
    return [{**whole, "source": table["campaign"], "coefficients": table["rows"]}]


def _figure(found: Mapping[str, Any] | None) -> str:
    if found is None or found["value"] is None:
        return "--"
    text = f"${found['value']:.3f}$"
    if found["low"] is None:
        return text
    return f"{text} {{\\small $[{found['low']:.3f}, {found['high']:.3f}]$}}"
