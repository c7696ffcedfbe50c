"""A researcher with real data and a terminal: load, score, rank, compare and dump, using only commands. The data are
public human-rated sets; the tests are skipped without them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from scoring.boards import recompute

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.usefixtures("few_draws")]

# Data set, aspect, numbers of rows (from its README).
SETS = [
    ("novikova", "quality", {"items": 1280, "outputs": 2460, "ratings": 7380}),
    ("usr_topicalchat", "overall", {"items": 60, "outputs": 360, "ratings": 6480}),
    ("dailydialog_multiref", "overall", {"items": 100, "outputs": 500, "ratings": 500}),
]


def run(*words: str) -> dict:
    out = io.StringIO()
    call_command(*words, "--json", stdout=out, stderr=io.StringIO())
    return json.loads(out.getvalue())


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(("name", "aspect", "rows"), SETS, ids=[row[0] for row in SETS])
def test_from_folder_to_leaderboard_and_back(shared_data, tmp_path, name, aspect, rows):
    folder = str(shared_data / name)

    # A dry run stores nothing; loading stores every row; repeating changes nothing.
    dry = run("load", folder, "--project", name, "--dry-run")
    assert dry["fault_count"] == 0
    loaded = run("load", folder, "--project", name)
    assert {kind: loaded["counts"][kind]["added"] for kind in rows} == rows
    again = run("load", folder, "--project", name)
    assert all(count["added"] == count["replaced"] == 0 for count in again["counts"].values())

    # Two metrics; applying one again computes nothing.
    for evaluator in ("length", "token-f1"):
        assert run("score", evaluator, "--project", name, "--here")["scored"] == rows["outputs"]
    assert run("score", "length", "--project", name, "--here")["scored"] == 0

    # Systems in order with intervals; evaluators with trivial baselines, intervals, n and signature.
    systems = run("systems", name, "--aspect", aspect)["rows"]
    values = [row["value"] for row in systems]
    assert values == sorted(values, reverse=True)
    assert all(row["low"] <= row["value"] <= row["high"] for row in systems)
    table = run("meta", name, "--aspect", aspect)
    evaluators = {row["evaluator"]: row for row in table["rows"]}
    assert {"length", "overlap", "random", "token-f1"} <= set(evaluators)
    for evaluator in ("length", "token-f1"):
        pearson = evaluators[evaluator]["pearson"]
        assert pearson["low"] < pearson["value"] < pearson["high"]
        assert evaluators[evaluator]["n"] == rows["outputs"]
        assert evaluators[evaluator]["signature"].startswith(evaluator)

    # A dump can be loaded, and dumping that again gives the same bytes.
    run("dump", name, str(tmp_path / "first"))
    run("load", str(tmp_path / "first"), "--project", f"{name}-again")
    run("dump", f"{name}-again", str(tmp_path / "second"))
    first, second = read_files(tmp_path / "first"), read_files(tmp_path / "second")
    assert first.keys() == second.keys()
    assert all(first[file] == second[file] for file in first)

    # The tables can be recomputed from the folder, to the last digit.
    assert len(json.loads(first["leaderboard.json"])["tables"]) >= 3
    assert recompute.main([str(tmp_path / "second")]) == 0


def test_comparisons_rank_systems_by_win_rate(shared_data):
    """pandalm has 2,997 comparisons by three annotators and no ratings."""
    loaded = run("load", str(shared_data / "pandalm"), "--project", "pandalm")
    assert loaded["counts"]["comparisons"]["added"] == 2997
    table = run("systems", "pandalm")  # without ratings, the win rate is used
    assert (table["method"], table["aspect"]) == ("win-rate", "overall")
    rates = [row["value"] for row in table["rows"]]
    assert rates == sorted(rates, reverse=True)
    assert 0 <= min(rates) < max(rates) <= 1
