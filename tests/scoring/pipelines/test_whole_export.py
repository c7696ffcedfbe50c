"""A scored project exported, loaded and exported again: equal bytes, scores and tables; and its tables recomputed from
the folder alone, in a process without Django."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from annotation.exporters.options import ExportOptions
from annotation.pipelines.exports import write_export
from evalapp.accounts.models import Project
from scoring.boards.recompute import recompute_folder
from scoring.models import Evaluator, Leaderboard, ScoreSet
from tests.taking import list_errors, take_in

pytestmark = pytest.mark.django_db


def export(project: Project, folder: Path, **options: object) -> dict[str, bytes]:
    folder.mkdir(parents=True)
    write_export(project, folder, ExportOptions(**options), lambda done: None)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("format", ["safe-csv", "parquet"])
def test_reloaded_export_is_an_equal_project(few_draws, whole, tmp_path, format):
    first = export(whole.project, tmp_path / "first", format=format)
    assert b"eva@example.org" not in b"".join(first.values())
    assert b"sentinel" in b"".join(first[name] for name in first if name.startswith("score_sets"))
    twin = Project.objects.create(slug="twin", name="twin", lang="de")
    upload = take_in(twin, first)
    assert upload.state == "done", list_errors(upload)
    assert upload.ignored == []
    second = export(twin, tmp_path / "second", format=format)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    again = take_in(twin, first)
    assert all(count["same"] == count["rows"] for count in again.counts.values()), again.counts
    sets = ScoreSet.objects.filter(project=twin)
    assert [s.n_scores for s in sets] == [24] * 4
    assert Evaluator.objects.filter(project=twin).count() == 3
    kept, told = (Leaderboard.objects.filter(project=p).count() for p in (whole.project, twin))
    assert kept == told == len(json.loads(first["leaderboard.json"])["tables"])


def test_tables_are_recomputed_without_django(whole, tmp_path):
    export(whole.project, tmp_path / "out", raters="pseudonyms")
    assert "r0" not in (tmp_path / "out" / "ratings.jsonl").read_text()
    outcomes = recompute_folder(tmp_path / "out")
    kinds = [outcome.title.split(",")[0] for outcome in outcomes]
    # The default tables: mean, win rate, M1, evaluators at three levels and by two kinds of comparisons, agreement; and
    # the requested ones.
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "systems": 9, "evaluators": 9, "enhanced": 1, "agreement": 2, "slices": 1, "matrix": 2, "aspects": 1,
    }  # fmt: skip
    assert [str(d) for outcome in outcomes for d in outcome.differences] == []
    assert all(outcome.is_equal and outcome.largest < 1e-12 for outcome in outcomes)
    program = (
        "import sys; sys.modules['django'] = sys.modules['celery'] = None\n"
        "from scoring.boards.recompute import main\n"
        "code = main([sys.argv[1]])\n"
        "assert 'scoring.models' not in sys.modules and 'annotation' not in sys.modules\n"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == f"{len(outcomes)} tables: all equal."
    # The order of lines does not matter, so exports in the earlier order (by code point) give the same tables.
    for path in (tmp_path / "out").glob("*.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(reversed(lines)), encoding="utf-8")
    again = recompute_folder(tmp_path / "out")
    assert [outcome.is_equal for outcome in again] == [True] * len(outcomes)
    mean = Leaderboard.objects.get(project=whole.project, params__ratings="z", kind="systems").table["rows"][0]
    ends = "" if mean["low"] is None else f" [{mean['low']:.4f}, {mean['high']:.4f}]"
    assert f"{mean['label']:<32} {mean['value']:.4f}{ends}" in done.stdout
