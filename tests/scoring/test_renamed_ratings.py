"""0.1.0 called z-shrunk `ratings: z`: database rows, uploaded exports, saved evaluators."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from evalapp.common.models import Run
from evalapp.versions import signed
from scoring.boards.systems.query import SystemsQuery
from scoring.ml.training.fit import MARK, claim_folder
from scoring.models import Evaluator, Leaderboard, ScoreSet, Snapshot
from scoring.selectors.snapshots import compare_tables
from scoring.services.leaderboards import get_leaderboard
from scoring.services.snapshots import take_snapshot
from tests.scoring.ml.training.toy_entry import ENTRY
from tests.taking import TABLE, WHOLE, list_errors, take_in

migration = importlib.import_module("scoring.migrations.0006_ratings_z_shrunk")
PARAMS = {"aspect": "quality", "method": "mean", "ratings": "z", "systems": "all", "by": ""}


@pytest.mark.django_db
def test_rows_of_the_first_version_are_renamed_and_keep_their_figures(cast):
    take_in(cast.project, WHOLE)
    query = SystemsQuery(aspect="quality", ratings="z-shrunk")
    now = get_leaderboard(project=cast.project, query=query).table
    snapshot = take_snapshot(project=cast.project, query=query, title="Old")
    # As written by 0.1.0.
    old = {**snapshot.table, "ratings": "z", "signature": "method:mean|aspect:quality|ratings:z|systems:all"}
    Snapshot.objects.filter(pk=snapshot.pk).update(params={**snapshot.params, "ratings": "z"}, table=old)
    options = {"parts": ["a", "b"], "ratings": "z"}
    evaluator = Evaluator.objects.create(
        project=cast.project, slug="c", name="combined", kind="combined", options=options
    )
    other = Evaluator.objects.create(
        project=cast.project, slug="d", name="d", kind="trained", options={"ratings": "raw"}
    )
    params = {"board": "systems", "query": PARAMS}
    run = Run.objects.create(project=cast.project, kind="rank", title="x", params=params, input_hash="0")
    migration.rename(apps, None)
    snapshot.refresh_from_db()
    assert snapshot.params["ratings"] == snapshot.table["ratings"] == "z-shrunk"
    assert snapshot.table["signature"] == "method:mean|aspect:quality|ratings:z-shrunk|systems:all"
    assert snapshot.table["rows"] == old["rows"]
    # Only the version differs from today's table, so it is compared with the earlier one.
    assert not [row for row in compare_tables(snapshot.table, now).rows if row.difference]
    evaluator.refresh_from_db()
    other.refresh_from_db()
    run.refresh_from_db()
    assert (evaluator.options["ratings"], other.options["ratings"]) == ("z-shrunk", "raw")
    assert run.params == {"board": "systems", "query": {**PARAMS, "ratings": "z-shrunk"}}


@pytest.mark.django_db
@pytest.mark.parametrize(("sign", "today"), [(False, "z-shrunk"), (True, "z")])
def test_tables_and_combinations_of_an_export_keep_their_meaning(cast, sign, today):
    signature = "method:mean|aspect:quality|ratings:z|systems:all"
    table = {**TABLE, "ratings": "z", "signature": signed(signature) if sign else signature}
    combined = {
        "id": "both", "evaluator": "both", "name": "combined", "kind": "combined", "aspect": "", "references": "",
        "options": {"method": "stacked", "ratings": "z"}, "data": "", "systems": [], "n_in_training": 0,
        "signature": signed("combined|ratings:z") if sign else "combined|ratings:z", "short_signature": "combined",
        "scored_at": "2026-05-01T12:00:00+00:00",
    }  # fmt: skip
    files = {
        **WHOLE, "leaderboard.json": {"tables": [{"kind": "systems", "params": PARAMS, "table": table}]},
        "score_sets.jsonl": [combined],
        "scores.jsonl": [{"set": "both", "item": "i1", "system": "s", "value": 0.5, "input": 1}],
    }  # fmt: skip
    upload = take_in(cast.project, files)
    assert upload.state == "done", list_errors(upload)
    kept = Leaderboard.objects.get(project=cast.project)
    assert kept.params["ratings"] == kept.table["ratings"] == today
    assert f"|ratings:{today}|" in kept.table["signature"]
    assert ScoreSet.objects.get().evaluator.options["ratings"] == today
    # Uploading the same files again gives the same set, not another evaluator of that name.
    again = take_in(cast.project, files)
    assert again.state == "done", list_errors(again)


def test_checkpoints_of_the_first_version_continue_unchanged(tmp_path: Path) -> None:
    from tests.scoring.ml.training.test_several import make_job

    job = make_job(ENTRY, tmp_path)
    shrunk = _with_ratings(job, "z-shrunk")
    claim_folder(shrunk)
    said = json.loads((tmp_path / MARK).read_text())
    del said["version"]
    said["options"]["ratings"] = "z"
    (tmp_path / MARK).write_text(json.dumps(said))
    claim_folder(shrunk)
    with pytest.raises(Exception, match="other ratings: take another folder"):
        claim_folder(_with_ratings(job, "z"))


def _with_ratings(job: Any, ratings: str) -> Any:
    from dataclasses import replace

    return replace(job, options={**job.options, "ratings": ratings})
