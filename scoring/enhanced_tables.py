"""Evaluators by reference set as files: CSV with one row per evaluator and set, and LaTeX in the form of Table 3 of the
REAM paper (booktabs)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from evalapp.markup import escape_latex, guard_formula, join_latex

from .selectors.leaderboards import COEFFICIENTS

PARTS = ("value", "low", "high")


def as_csv(table: Mapping[str, Any]) -> str:
    """Figures at full precision; differences are to the first set."""
    sizes = {row["name"]: row for row in table["sets"]}
    head = ["evaluator", "references", "origin", "per_item", "n"]
    head += [f"{name}_{part}" for name in COEFFICIENTS for part in PARTS]
    head += [f"difference_{part}" for part in PARTS] + ["p", "p_holm", "p_williams", "signature", "settings"]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    for row in table["rows"]:
        to_first = {d["a"]: d for d in row["differences"] if d["b"] == table["baseline"]}
        for name, cell in row["cells"].items():
            d = to_first.get(name, {})
            values = [row["evaluator"], name, sizes[name]["origin"], sizes[name]["per_item"], cell["n"]]
            values += [cell[c][part] for c in COEFFICIENTS for part in PARTS] + [d.get(part) for part in PARTS]
            values += [d.get("p"), d.get("p_holm"), d.get("williams"), cell["signature"], table["signature"]]
            writer.writerow([guard_formula(value) for value in values])
    return buffer.getvalue()


def as_latex(table: Mapping[str, Any]) -> str:
    """Pearson / Kendall, one column per set; a star where the difference to the first is below .05 after Holm."""
    names = [row["name"] for row in table["sets"]]
    lines = [f"% {table['signature']}", *(f"% {row['name']}: {row['origin']}" for row in table["sets"])]
    lines += [f"% Out of date: {row['evaluator']}: {row['reason']}" for row in table.get("stale", [])]
    lines += [rf"\begin{{tabular}}{{l{'r' * len(names)}}}", r"\toprule"]
    lines += [" & ".join(["Evaluator", *map(escape_latex, names)]) + r" \\", r"\midrule"]
    for row in table["rows"]:
        starred = {d["a"] for d in row["differences"] if d["b"] == table["baseline"] and (d["p_holm"] or 1) < 0.05}
        cells = [_pair(row["cells"][name], name in starred) for name in names]
        lines.append(" & ".join([escape_latex(row["evaluator"]), *cells]) + r" \\")
    return join_latex([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _pair(cell: Mapping[str, Any], starred: bool) -> str:
    values = [cell[name]["value"] for name in ("pearson", "kendall")]
    if None in values:
        return "--"
    return "$" + " / ".join(f"{value:.3f}" for value in values) + ("^{*}" if starred else "") + "$"
