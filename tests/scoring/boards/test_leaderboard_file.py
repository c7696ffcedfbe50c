"""`leaderboard.json` is validated before use: each error with its path, at most one per table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scoring.boards.leaderboard_file import find_table_fault, list_faults
from scoring.boards.recompute import main

ESTIMATE = {"value": 0.5, "low": None, "high": 1, "n": 3, "note": ""}
HEAD = {"aspect": "q", "signature": "s", "note": "", "n_simulated": 0}
WHO = {"evaluator": "e", "name": "e", "kind": "baseline", "is_sentinel": False, "signature": "e|v:1"}
FIGURES = dict.fromkeys(("pearson", "spearman", "kendall"), ESTIMATE)
SYSTEM = {
    "label": "a", "system": "a", "kind": "machine", "step": None, "note": "", "rank": 1,
    "shares": {"win": 1, "tie": 0, "loss": 0}, "rank_low": 1, "rank_high": 1, "tier": 1, "value": 0.5, "low": None,
    "high": None, "n": 2, "n_ratings": 4, "simulated": 0.0,
}  # fmt: skip
EVALUATOR = {
    **WHO, **FIGURES, "n": 3, "n_missing": 0, "note": "", "letters": "a", "whole": None, "corrected": ESTIMATE,
    "score_set": "e", "accuracy": ESTIMATE,
}  # fmt: skip
TEST = {"names": ["e"], "p_holm": [[None]], "signature": "t", "note": ""}
ENHANCED = {"evaluator": "e", "name": "e", "differences": [], "n": 3, "cells": {
    name: {**FIGURES, "n": 3, "signature": "", "note": ""} for name in ("original", "good")
}}  # fmt: skip
SETS = [{"name": name, "origin": "", "n_references": 1, "per_item": 1.5} for name in ("original", "good")]
COEFFICIENT = {"name": "alpha", "label": "alpha", **ESTIMATE}
LINE = {
    "aspect": "q", "judged": "ratings", "source": "", "scale": "ordinal", "n_units": 1, "n_raters": 2,
    "n_judgements": 3, "n_simulated": 0, "coefficients": [COEFFICIENT],
}  # fmt: skip
TABLES: list[dict[str, Any]] = [
    {"kind": "systems", "method": "mean", "scale": [1, 5], "extras": {}, "rows": [SYSTEM]},
    {
        "kind": "evaluators", "level": "segment", "coefficient": "pearson", "ceiling": ESTIMATE, "test": TEST,
        "people": "ratings", "rows": [EVALUATOR, EVALUATOR],
    },
    {"kind": "enhanced", "baseline": "original", "sets": SETS, "rows": [ENHANCED]},
    {"kind": "agreement", "aspect": "", "campaign": "", "scale": "auto", "rows": [LINE]},
    {"kind": "agreement", "campaign": "", "scale": "auto", "judged": "ratings", "rows": [COEFFICIENT]},
    {
        "kind": "slices", "key": "k", "coefficient": "pearson", "parts": [{"name": "x", "n": 3}],
        "rows": [{**WHO, "cells": [{"raw": ESTIMATE, "shrunken": ESTIMATE, "weight": 0.5}]}],
    },
    {"kind": "matrix", "coefficient": "pearson", "rows": [{**WHO, "cells": [None]}]},
    {
        "kind": "aspects", "coefficient": "pearson", "figure": "pearson", "aspects": [{"aspect": "q"}],
        "rows": [{**WHO, "score_set": None, "cells": [ESTIMATE]}],
    },
]  # fmt: skip


def document() -> dict[str, Any]:
    entries = [{"kind": table["kind"], "params": {"systems": "all"}, "table": {**HEAD, **table}} for table in TABLES]
    return json.loads(json.dumps({"format": 1, "tables": entries}))


def test_valid_document_has_no_error():
    assert list(list_faults(document())) == []
    assert list(list_faults({"tables": []})) == []


@pytest.mark.parametrize(
    ("place", "path", "value", "fault"),
    [
        (0, (), 7, ("tables[0]", "must be an object")),
        (0, ("kind",), "mystery", ("tables[0].kind", "must be one of agreement, ")),
        (0, ("kind",), "matrix", ("tables[0].table.coefficient", "is missing")),
        (0, ("params", "systems"), "none", ("tables[0].params.systems", "must be one of all, ")),
        (0, ("params", "aspect"), {"x": 1}, ("tables[0].params.aspect", "must be a text")),
        (0, ("params", "resamples"), 10**12, ("tables[0].params.resamples", "must be a whole number from 0")),
        (0, ("params", "covariates"), "taste", ("tables[0].params.covariates", "covariates must be some of")),
        (0, ("table", "rows"), {}, ("tables[0].table.rows", "must be a list")),
        (0, ("table", "rows", 0, "value"), "5", ("tables[0].table.rows[0].value", "must be a number or null")),
        (0, ("table", "rows", 0, "shares", "win"), [], ("tables[0].table.rows[0].shares.win", "must be a number")),
        (0, ("table", "extras", "side"), {"points": 3}, ("tables[0].table.extras.side.value", "is missing")),
        (0, ("table", "rows", 0, "shares", "win"), None, ("tables[0].table.rows[0].shares.win", "must be a number")),
        (0, ("table", "rows", 0, "shares"), {"win": 1}, ("tables[0].table.rows[0].shares.tie", "is missing")),
        (
            0, ("table", "extras", "rater_effects"), {"n": 2, "low": None, "high": 1},
            ("tables[0].table.extras.rater_effects.low", "must be a number"),
        ),
        (1, ("params", "coefficient"), "pa", ("tables[1].table.rows", "must have “pa”")),
        (1, ("table", "test", "p_holm"), [], ("tables[1].table.test.p_holm", "must be 1 by 1")),
        (0, ("table", "totals"), {"games": "x"}, ("tables[0].table.totals.games", "must be a number")),
        (1, ("table", "rows", 0, "evaluator"), "a/b", ("tables[1].table.rows[0].evaluator", "must be letters, ")),
        (2, ("table", "rows", 0, "evaluator"), "", ("tables[2].table.rows[0].evaluator", "must be letters, ")),
        (4, ("table", "prevalence"), [{"n": []}], ("tables[4].table.prevalence[0].n", "must be a number")),
        (7, ("table", "figure"), "beauty", ("tables[7].table.figure", "must be one of pearson, ")),
        (1, ("table", "people"), "everybody", ("tables[1].table.people", "must be one of ratings")),
        (1, ("table", "rows", 0, "pearson"), None, ("tables[1].table.rows[0].pearson", "must be an object")),
        (1, ("table", "rows", 1, "pa"), ESTIMATE, ("tables[1].table.rows[1].pa", "must be in all rows")),
        (2, ("table", "sets", 0, "name"), "bad", ("tables[2].table.rows[0].cells.bad", "is missing")),
        (3, ("table", "rows", 0, "judged"), "x", ("tables[3].table.rows[0].judged", "must be one of ratings")),
        (3, ("table", "rows", 0, "coefficients"), [], ("tables[3].table.rows[0].coefficients", "must be a list of 1")),
        (7, ("table", "rows", 0, "score_set"), 7, ("tables[7].table.rows[0].score_set", "must be a text")),
        (5, ("table", "rows", 0, "cells"), [], ("tables[5].table.rows[0].cells", "must be 1, as many as")),
    ],
)  # fmt: skip
def test_errors_name_their_path(place, path, value, fault):
    given = document()
    inner: Any = given["tables"]
    for name in (place, *path)[:-1]:
        inner = inner[name]
    inner[(place, *path)[-1]] = value
    ((where, problem),) = list_faults(given)
    assert where == fault[0]
    assert problem.startswith(fault[1])


def test_recomputing_requires_more_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Once, such files ended in a traceback."""
    file = tmp_path / "leaderboard.json"
    for content, told in (
        ('{"tables": 7}', "leaderboard.json: tables must be a list of tables"),
        ("[" * 100_000, "leaderboard.json: this is not JSON"),
    ):
        file.write_text(content)
        assert main([str(tmp_path)]) == 1
        assert capsys.readouterr().err.startswith(told)
    file.write_text(json.dumps(document()))
    assert main([str(tmp_path)]) == 1
    assert "not recomputed: tables[0].params.by is missing" in capsys.readouterr().out
    enough = document()["tables"][1]
    enough["params"] |= {"level": "segment", "grouping": "none", "references": "original", "ratings": "raw"}
    assert find_table_fault(enough, 0, to_compute=True) == ("tables[0].sets", "is missing")
    by_aspect = document()["tables"][7]
    by_aspect["params"] = {**enough["params"], "coefficient": "pearson"}
    by_aspect["tables"] = {"q": {"params": dict(enough["params"]), "sets": []}}
    assert find_table_fault(by_aspect, 7, to_compute=True) is None
    del by_aspect["tables"]["q"]["params"]["ratings"]
    assert find_table_fault(by_aspect, 7) is None
    assert find_table_fault(by_aspect, 7, to_compute=True) == ("tables[7].tables.q.params.ratings", "is missing")
