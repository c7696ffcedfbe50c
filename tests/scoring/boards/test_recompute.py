"""Tables of an export recomputed from its files: equal for any order of rows, resampling seed and file format;
different once a judgement was changed. The folder is created here, without the web application."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalapp.versions import signed
from scoring.boards import recompute
from scoring.boards.data.files import OWN_FORM, ExportFolder
from scoring.boards.data.folder import compute_entry
from scoring.boards.recompute import Outcome, main, recompute_entry, recompute_folder, write_lines

SYSTEMS = {"m1": "machine", "m2": "machine", "m3": "machine", "gold": "human"}
QUALITY = {"aspect": "quality", "ratings": "raw", "systems": "all", "by": "", "filter": "", "references": "original"}
META = {**QUALITY, "level": "segment", "grouping": "none"}
TABLES: list[dict[str, Any]] = [
    {"kind": "systems", "params": {**QUALITY, "method": "mean"}},
    {"kind": "systems", "params": {**QUALITY, "method": "mean", "ratings": "z", "systems": "machine"}},
    {"kind": "systems", "params": {**QUALITY, "method": "mean", "ratings": "rank", "seed": 7, "resamples": 200}},
    {"kind": "systems", "params": {**QUALITY, "method": "mean", "filter": "slow"}},
    {"kind": "systems", "params": {**QUALITY, "method": "win-rate"}},
    {"kind": "systems", "params": {**QUALITY, "method": "davidson", "weights": "propensity"}},
    {"kind": "systems", "params": {**QUALITY, "method": "m1"}},
    {"kind": "systems", "params": {**QUALITY, "method": "mean", "by": "len"}, "sets": ["len"]},
    {"kind": "evaluators", "params": META, "sets": ["len", "ref@good", "ref@original"]},
    {"kind": "evaluators", "params": {**META, "level": "system", "ratings": "z"}, "sets": ["len"]},
    {
        "kind": "enhanced", "params": {**META, "systems": "machine"}, "sets": ["ref@good", "ref@original"],
        "references": ["original", "good"],
    },
    {"kind": "agreement", "params": {"aspect": "", "judged": "", "campaign": "", "scale": "auto", "filter": ""}},
    {
        "kind": "agreement",
        "params": {"aspect": "", "judged": "", "campaign": "", "scale": "auto", "filter": "", "ratings": "rank"},
    },
    {
        "kind": "agreement",
        "params": {"aspect": "quality", "judged": "comparisons", "campaign": "", "scale": "auto", "filter": "slow"},
    },
    {"kind": "systems", "params": {**QUALITY, "method": "mean", "ratings": "z-shrunk"}},
]  # fmt: skip


def data(seed: int = 3) -> dict[str, list[dict[str, Any]]]:
    """Twelve items in six groups, four systems (one with two steps), three raters, comparisons of both kinds."""
    rng = np.random.default_rng(seed)
    items = [{"id": f"i{k}", "group": f"g{k // 2}", "references": ["x"]} for k in range(12)]
    outputs = [("gold", None), ("m1", None), ("m2", None), ("m3", 100), ("m3", 200)]
    ratings, comparisons, scores = [], [], []
    for k, item in enumerate(items):
        for place, (system, step) in enumerate(outputs):
            where = {"item": item["id"], "system": system, **({} if step is None else {"step": step})}
            quality = 4 - 0.6 * place + rng.normal()
            for rater in ("ann", "bob", "bob#2"):
                value = round(float(np.clip(quality + rng.normal(), 1, 5)), 2)
                ratings.append({**where, "rater": rater, "aspect": "quality", "value": value, "simulated": k == 0})
            for name, noise in (("len", 2.0), ("ref@original", 1.0), ("ref@good", 0.5)):
                value = None if (name, k, place) == ("len", 3, 1) else float(quality + noise * rng.normal())
                scores.append({"set": name, **where, "value": value, "in_training": name == "len" and k == 11})
            verdict = ("a", "tie", "b", "cannot_decide")[rng.integers(4)]
            beside = {"item": item["id"], "rater": "ann", "aspect": "quality"}
            side = {"system_a": system, **({} if step is None else {"step_a": step})}
            comparisons.append({**beside, **side, "system_b": {"reference": 0}, "verdict": verdict})
            if place and place < 3:
                verdict = ("a", "b", "tie", "both_bad")[rng.integers(4)]
                chance = {"meta": {"propensity": 0.25 * place, **({"swapped": True} if k % 2 else {})}} if k % 3 else {}
                comparisons.append({**beside, "system_a": "gold", "system_b": system, "verdict": verdict, **chance})
    sets = [
        {
            "id": name, "evaluator": name.split("@")[0], "name": name.split("@")[0], "kind": "baseline", "aspect": "",
            "references": references, "signature": f"{name}|v1", "short_signature": name, "scored_at": None,
            "n_in_training": 5 if name == "len" else 0, "systems": [],
        }
        for name, references in (("len", ""), ("ref@original", "original"), ("ref@good", "good"))
    ]  # fmt: skip
    return {
        "items": items,
        "outputs": [
            {"item": item["id"], "system": system, "step": step, "text": system * (1 + k % 3)}
            for k, item in enumerate(items)
            for system, step in outputs
        ],
        "systems": [{"id": name, "kind": kind} for name, kind in SYSTEMS.items()], "ratings": ratings,
        "comparisons": comparisons, "scores": scores, "score_sets": sets,
        "filters": [{"name": "slow", "raters": ["bob"], "reason": "slow"}],
    }  # fmt: skip


def write(folder: Path, tables: dict[str, list[dict[str, Any]]], *, cells: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    head = {"name": "x", "aspects": [{"name": "quality", "min": 1, "max": 5}]}
    (folder / "dataset.json").write_text(json.dumps(head))
    for table, rows in tables.items():
        if not cells:
            (folder / f"{table}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            continue
        names = sorted({name for row in rows for name in row})
        with (folder / f"{table}.safe.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\r\n")
            writer.writerow(names)
            for row in rows:
                writer.writerow([as_cell(row.get(name)) for name in names])
    return folder


def as_cell(value: Any) -> str:
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) else json.dumps(value)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with its tables, as the web application would have stored them."""
    folder = write(tmp_path_factory.mktemp("exports") / "whole", data())
    tables = []
    for entry in TABLES:
        asked = [{"aspect": "quality", "judged": way} for way in ("ratings", "comparisons", "turing")]
        told = {"aspect": "quality", "judged": "comparisons", "evaluator": {"slug": "len", "aspect": ""}}
        first = {**entry, "table": {**told, "rows": asked if entry["kind"] == "agreement" else []}}
        table = compute_entry(ExportFolder(folder), first, {})
        if entry["params"]["filter"]:
            table["filter"] = {"name": entry["params"]["filter"], "digest": "0abc"}
            table["signature"] += "|filter:slow@0abc"
        table["signature"] = signed(table["signature"])
        for individual in ("raters", "pairs", "calibration", "components"):
            table.pop(individual, None)
        tables.append({**entry, "table": {"project": "somewhere", "lang": "en", **table}})
    (folder / "leaderboard.json").write_text(json.dumps({"format": 1, "tables": tables}))
    return folder


def copied(exported: Path, folder: Path, tables: dict[str, list[dict[str, Any]]], **how: Any) -> Path:
    write(folder, tables, **how)
    (folder / "leaderboard.json").write_text((exported / "leaderboard.json").read_text())
    return folder


def test_folder_reproduces_its_tables(exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(exported)]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f"{len(TABLES)} tables: all equal.\n")
    table = json.loads((exported / "leaderboard.json").read_text())["tables"][0]["table"]
    # The mean over outputs of means over raters, by hand. bob#2 repeats bob's ratings: the first judgement counts.
    rows = [row for row in data()["ratings"] if row["system"] == "gold" and row["rater"] != "bob#2"]
    (gold,) = (row for row in table["rows"] if row["label"] == "gold")
    assert gold["value"] == pytest.approx(np.mean([row["value"] for row in rows]), abs=1e-9)
    assert f"{'gold':<32} {gold['value']:.4f} [" in printed


@pytest.mark.parametrize("cells", [False, True])
def test_another_order_of_rows_and_other_rater_names(exported: Path, tmp_path: Path, cells: bool) -> None:
    tables = data()
    rng = np.random.default_rng(5)
    called = {"ann": "z-9", "bob": "a-1", "bob#2": "a-1#2"}
    for name, rows in tables.items():
        rows = [{**row, "rater": called[row["rater"]]} if "rater" in row else row for row in rows]
        tables[name] = [rows[k] for k in rng.permutation(len(rows))]
    tables["filters"][0]["raters"] = ["a-1"]
    outcomes = recompute_folder(copied(exported, tmp_path / "other", tables, cells=cells))
    assert [str(d) for outcome in outcomes for d in outcome.differences] == []
    assert all(outcome.is_equal and outcome.n_numbers > 10 for outcome in outcomes)


def test_changed_judgement_or_score_is_found(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = data()
    tables["ratings"][0]["value"] -= 0.01
    folder = copied(exported, tmp_path / "tampered", tables)
    different = [not outcome.is_equal for outcome in recompute_folder(folder)]
    # Comparisons and scores alone are unaffected; ranks within an item need not change either.
    assert [different[k] for k in (0, 1, 3, 8, 9)] == [True, True, True, True, True]
    assert [different[k] for k in (4, 5, 6, 7)] == [False] * 4
    assert main([str(folder), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["n_equal"] == sum(not flag for flag in different)
    assert found["tables"][0]["differences"][0]["where"] == "rows[gold].value"


def test_another_seed_changes_intervals_but_no_value(exported: Path) -> None:
    outcomes = recompute_folder(exported, overrides={"seed": 11})
    assert not any(outcome.is_equal for outcome in outcomes[:4])
    moved = {d.where.split(".")[-1] for outcome in outcomes[:4] for d in outcome.differences}
    assert moved <= {"low", "high", "signature", "rank_low", "rank_high", "tier"}


def test_missing_parts_are_reported(exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "leaderboard.json: the folder has no such file" in capsys.readouterr().err
    tables = data()
    del tables["ratings"], tables["scores"], tables["score_sets"]
    folder = copied(exported, tmp_path / "part", tables)
    problems = [outcome.problem for outcome in recompute_folder(folder)]
    assert problems[0] == "ratings: the folder has no judgements by rater; export them per rater"
    assert problems[4] == ""
    assert "there is no score set “len”" in problems[7]
    assert main([str(folder)]) == 1
    assert "not recomputed: ratings: the folder has no judgements by rater" in capsys.readouterr().out


@pytest.mark.parametrize("table", ["items", "scores"])
def test_file_that_was_not_copied_is_named(exported: Path, tmp_path: Path, table: str) -> None:
    """Otherwise the figures of an incomplete copy would look wrong."""
    tables = data()
    del tables[table]
    outcomes = recompute_folder(copied(exported, tmp_path / "part", tables))
    problem = f"{table}: the folder has no such file, but others refer to it; copy every file of the export"
    found = {outcome.problem for outcome in outcomes if not outcome.is_equal}
    assert found == {problem}


def test_empty_table_of_compared_pairs_is_equal(exported: Path, tmp_path: Path) -> None:
    params = {"aspect": "quality", "systems": "all", "references": "original", "test": "perm-both", "filter": ""}
    entry = {"kind": "pairs", "params": params, "sets": ["len", "ref@original"]}
    tables = data()
    del tables["comparisons"]  # an export has no file for an empty table
    folder = copied(exported, tmp_path / "uncompared", tables)
    asked = {**entry, "table": {"aspect": "quality", "n_ratings": 0, "rows": []}}
    table = compute_entry(ExportFolder(folder), asked, {})
    assert (table["n_ratings"], table["n_pairs"]) == (0, 0)
    assert "has been compared" in table["note"]
    (folder / "leaderboard.json").write_text(json.dumps({"format": 1, "tables": [{**entry, "table": table}]}))
    (outcome,) = recompute_folder(folder)
    assert (outcome.is_equal, outcome.problem) == (True, "")
    # A table based on comparisons lacks them.
    table["n_ratings"] = 30
    (folder / "leaderboard.json").write_text(json.dumps({"format": 1, "tables": [{**entry, "table": table}]}))
    (outcome,) = recompute_folder(folder)
    assert outcome.problem == "comparisons: the folder has no judgements by rater; export them per rater"


def test_damaged_or_newer_table_is_reported_and_others_are_computed(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(exported, tmp_path / "newer", data())
    kept = json.loads((folder / "leaderboard.json").read_text())["tables"][:4]
    kept[0] |= {"kind": "mystery"}
    kept[1]["table"]["rows"] = [7]
    (folder / "leaderboard.json").write_text(json.dumps({"format": 2, "tables": [*kept, 7]}))
    outcomes = recompute_folder(folder)
    assert [outcome.is_equal for outcome in outcomes] == [False, False, True, True, False]
    assert "mystery" in outcomes[0].problem
    assert outcomes[1].problem == "tables[1].table.rows[0] must be an object"
    assert main([str(folder)]) == 1
    printed = capsys.readouterr().out
    assert "tables[0], mystery\n  not recomputed: " in printed
    assert printed.endswith("5 tables: 3 NOT equal.\n")


def test_missing_numbers_are_equal(tmp_path, monkeypatch):
    monkeypatch.setattr(recompute, "compute_entry", lambda *_: {"kind": "systems", "value": float("nan")})
    entry = {"kind": "systems", "params": {}, "table": {"kind": "systems", "value": 0.5}}
    outcome = recompute_entry(ExportFolder(tmp_path), entry, {})
    assert [difference.where for difference in outcome.differences] == ["value"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"value": None}, "value is missing"),
        ({"value": "good"}, "value is 'good', not a number"),
        ({"rater": None}, "rater is missing"),
        (7, "it is not an object"),
    ],
)
def test_unreadable_row_is_named(exported: Path, tmp_path: Path, change: Any, problem: str) -> None:
    tables = data()
    tables["ratings"][4] = {**tables["ratings"][4], **change} if isinstance(change, dict) else change
    folder = copied(exported, tmp_path / "part", tables)
    told = f"ratings.jsonl, row 5: {problem}; {OWN_FORM}"
    outcomes = recompute_folder(folder)
    assert outcomes[0].problem == told
    assert [outcome.is_equal for outcome in outcomes if outcome.problem != told] == [True] * 5


def test_table_with_the_test_of_0_1_0_uses_that_test(exported: Path, tmp_path: Path) -> None:
    """Its signature names no version and `perm-both`; items and systems were resampled for the intervals, and p below
    the diagonal was 1. The recomputed table is equal; with today's names, the figures are those of today's test."""
    folder = copied(exported, tmp_path / "earlier", data())
    document = json.loads((folder / "leaderboard.json").read_text())
    entry = next(
        one for one in document["tables"] if one["kind"] == "evaluators" and one["params"].get("level") == "system"
    )
    params = {**entry["params"], "test": "perm-both", "ratings": "raw", "people": "ratings"}
    signature = "level:system|boot:both|resamples:1000"
    asked = {**entry, "params": params, "table": {**entry["table"], "signature": signature}}
    table = compute_entry(ExportFolder(folder), asked, {})
    assert "|boot:both|" in table["signature"]
    if table["test"]["names"]:
        assert table["test"]["signature"].startswith("test:perm-both|")
        table["test"]["p_holm"] = [[1.0 if p is None else p for p in row] for row in table["test"]["p_holm"]]
    (folder / "leaderboard.json").write_text(
        json.dumps({"format": 1, "tables": [{**entry, "params": params, "table": table}]})
    )
    (outcome,) = recompute_folder(folder)
    assert (outcome.problem, outcome.differences, outcome.version) == ("", [], "0.1.0")


def test_printed_list_shows_ranks_like_the_tables() -> None:
    """An uncertain rank is printed as `1-2`; without a rank there is a dash, without ends the rank itself."""
    row = {"label": "m1", "value": 1.0, "low": None, "high": None, "rank": 1}
    shown = {
        "1-2": {**row, "rank_low": 1, "rank_high": 2},
        "1": {**row, "rank_low": 1, "rank_high": 1},
        "-": {**row, "rank": None, "rank_low": 1, "rank_high": 4},
        "3": {**row, "rank": 3},
    }
    for place, one in shown.items():
        lines = list(write_lines(Outcome("systems", {"rows": [one]}, None, problem="none")))
        assert lines[1].split()[:2] == [place, "m1"]
