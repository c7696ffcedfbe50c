"""Leaderboards as CSV and LaTeX."""

from __future__ import annotations

import csv
import io

from evalapp.markup import escape_latex
from scoring.boards.render.files import as_csv
from scoring.boards.render.latex import as_latex
from scoring.boards.render.page import place

ROW = {
    "rank": 1, "rank_low": 1, "rank_high": 2, "tier": 1, "system": "=cmd()", "step": None, "label": "a_b & 50%",
    "kind": "machine", "note": "", "value": 3.14159,
    "low": 3.0, "high": 3.3, "n": 60, "n_ratings": 180, "simulated": 0.0,
}  # fmt: skip
UNDEFINED = {**ROW, "rank": None, "value": None, "low": None, "high": None, "note": "no judgement"}
TABLE = {"kind": "systems", "signature": "method:mean|seed:0", "n_simulated": 3, "rows": [ROW, UNDEFINED]}


def test_csv_neutralises_formulas_and_leaves_undefined_empty():
    rows = list(csv.DictReader(io.StringIO(as_csv(TABLE))))
    assert rows[0]["system"] == "'=cmd()"
    assert float(rows[0]["value"]) == 3.14159
    assert rows[1]["value"] == ""
    assert rows[1]["signature"] == "method:mean|seed:0"


def test_latex_is_escaped_and_states_its_source():
    text = as_latex(TABLE)
    assert text.startswith("% method:mean|seed:0\n% Figures include simulated judgements")
    assert r"1--2 & a\_b \& 50\% & $3.142$ {\small $[3.000, 3.300]$} & 60 \\" in text
    assert r"- & a\_b \& 50\% & -- & 60 \\" in text
    assert text.count(r"\bottomrule") == 1


def test_evaluators_table():
    estimate = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "note": ""}
    none = {"value": None, "low": None, "high": None, "n": 0, "note": "constant"}
    row = {
        "evaluator": "length", "kind": "sentinel", "is_sentinel": True, "pearson": estimate, "spearman": estimate,
        "kendall": none, "n": 9, "n_missing": 0, "signature": "length|v:1",
    }  # fmt: skip
    table = {"kind": "evaluators", "signature": "level:segment", "n_simulated": 0, "rows": [row]}
    assert r"\textit{length}" in as_latex(table)
    assert "% length: length|v:1" in as_latex(table)
    found = next(csv.DictReader(io.StringIO(as_csv(table))))
    assert (found["kendall_value"], found["kendall_note"], found["pearson_high"]) == ("", "constant", "0.6")


def test_escape_and_rank():
    assert escape_latex("\\{}~^$#") == r"\textbackslash{}\{\}\textasciitilde{}\textasciicircum{}\$\#"
    assert place({**ROW, "rank_high": 1}) == "1"
    assert place(UNDEFINED) == "-"


def test_interval_from_few_groups_is_marked():
    few = {**ROW, "note": "the interval rests on 4 items only"}
    text = as_latex({**TABLE, "rows": [few, ROW]})
    assert r"$3.142$$^{\dagger}$ {\small $[3.000, 3.300]$}" in text
    assert r"% $\dagger$ the interval rests on 4 items only: a_b & 50%" in text
    assert "dagger" not in as_latex(TABLE)
