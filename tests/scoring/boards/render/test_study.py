"""The tables of a study as text, CSV, LaTeX and picture."""

from __future__ import annotations

import csv
import io

import pytest

from scoring.boards.render.study import (
    as_csv,
    as_latex,
    as_text,
    choose_column,
    name_label,
    plan_picture,
    show_cell,
    show_test,
)
from tests.scoring.study_results import make_cell, make_result


def test_cells_have_sd_over_seeds_or_an_interval_over_groups():
    assert show_cell(make_cell(0.5, 0.1)) == "0.500 ± 0.100"
    assert show_cell(make_cell(0.5)) == "0.500 [0.400, 0.600]"
    assert show_cell({**make_cell(0.5), "low": None}) == "0.500"
    assert show_cell({**make_cell(0.5), "value": None}) == show_cell(None) == "-"
    assert show_cell(make_cell(-0.5, 0.1, difference={"p_holm": 0.049})) == "−0.500* ± 0.100"
    assert show_cell(make_cell(0.5, p=0.01, p_holm=0.049)) == "0.500† [0.400, 0.600]"
    assert "†" not in show_cell(make_cell(0.5, p=0.01, p_holm=0.05))
    assert "*" not in show_cell(make_cell(0.5, 0.1, difference={"p_holm": 0.05}))


def test_analysis_of_variance_as_text():
    test = {"f": 5.5, "df_between": 1, "df_within": 8, "p": 0.047, "note": ""}
    assert show_test("ANOVA", test) == "ANOVA: F(1, 8) = 5.50, p = 0.047"
    assert show_test("ANOVA", {**test, "f": None, "p": 0.0}) == "ANOVA: F(1, 8) = ∞, p < .001"
    assert show_test("ANOVA", {**test, "p": None, "note": "too few"}) == "ANOVA: too few"


def test_latex_is_a_booktabs_table_with_remarks_as_comments():
    lines = as_latex(make_result("alpha")).splitlines()
    assert lines[0] == "% Ablation · quality"
    assert r"full model & $0.500$ {\small $\pm 0.100$} & $0.300$ {\small $\pm 0.050$} \\" in lines
    assert r"one encoder per aspect & $0.700^{*}$ {\small $\pm 0.100$} & $0.200$ {\small $\pm 0.020$} \\" in lines
    assert any(line.startswith("% F1. One-way ANOVA: F(1, 2) = 4.50") for line in lines)
    assert "% full model: shared-bert|profile:recommended|seed:13" in lines


def test_csv_has_every_seed():
    rows = list(csv.DictReader(io.StringIO(as_csv(make_result("alpha")))))
    assert [(row["row"], row["figure"], row["values"]) for row in rows[:2]] == [
        ("full model", "f1", "0.4 0.6"),
        ("full model", "spearman", "0.25 0.35"),
    ]
    assert rows[2]["p_holm"] == "0.01"


def test_difference_from_ridge_is_a_column_with_its_test():
    result = make_result("alpha")
    (table,) = result["tables"]
    table["columns"].append("over_rival:spearman")
    table["rows"][0]["cells"]["over_rival:spearman"] = make_cell(0.25, p=0.01, p_holm=0.02)
    assert r"$0.250^{\dagger}$ {\small $[0.150, 0.350]$}" in as_latex(result)
    assert "†: p < .05" in as_text(result)
    row = next(row for row in csv.DictReader(io.StringIO(as_csv(result))) if row["figure"] == "over_rival:spearman")
    assert (row["p"], row["p_holm"], row["difference"]) == ("0.01", "0.02", "")


def test_text_names_what_is_left_out():
    text = as_text(make_result("alpha"))
    assert "Left out: w/o weak supervision. there are no checkpoints" in text
    assert "Measured on 9 items of 9 groups (30 %)" in text
    assert "* differs from the first row" in text


def test_picture_shows_the_foremost_figure_or_the_wanted_one():
    result = make_result("alpha")
    assert choose_column(result) == "f1"
    assert choose_column(result, "spearman") == "spearman"
    assert choose_column({**result, "evaluators": ["ridge", "maude"]}, "nothing") == "f1"
    picture = plan_picture(result)
    assert picture.finding == "F1: highest for one encoder per aspect (0.700)."
    assert picture.draw("light").as_svg().startswith("<svg")
    assert plan_picture({**result, "tables": []}) is None


def test_picture_of_reliabilities_has_the_noise_line_and_names_it():
    cells = {"gold": make_cell(0.5), "predicted": make_cell(0.4), "ceiling": make_cell(0.3)}
    table = {"name": "ream", "columns": list(cells), "rows": [{"label": "1", "cells": cells}], "tests": {}}
    result = {**make_result("alpha"), "study": "reliability", "tables": [table]}
    picture = plan_picture(result)
    noise = (
        "The line “highest R²” is what an error-free prediction would reach, because the measured reliability is "
        "partly chance."
    )
    assert noise in picture.finding
    svg = picture.draw("light").as_svg()
    assert ">highest R²</text>" in svg
    assert noise in svg
    # A result of an earlier version has no such line.
    earlier = {name: cells[name] for name in ("gold", "predicted")}
    table |= {"columns": list(earlier), "rows": [{"label": "1", "cells": earlier}]}
    picture = plan_picture(result)
    assert "highest" not in picture.finding
    assert "highest" not in picture.draw("light").as_svg()


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("human:a b", "human: a b"),
        ("sys-1", "sys-1"),
        ("AE", "wrong"),
        ("over_rival:decided", "decided pairs right, over ridge"),
    ],
)
def test_names_of_rows_and_columns(label, name):
    assert name_label(label) == name
