"""Scores computed by another program, as files (FAULTS F6)."""

from __future__ import annotations

import pytest

from annotation.exporters.options import ExportOptions
from annotation.pipelines.exports import write_export
from scoring.models import Score, ScoreSet
from tests.taking import WHOLE, list_errors, take_in

pytestmark = pytest.mark.django_db
SET = {
    "id": "mine", "evaluator": "my-metric", "name": "my-metric", "kind": "baseline", "signature": "my-metric|v:1",
    "short_signature": "my-metric|v:1", "scored_at": "2026-05-01T12:00:00+00:00",
}  # fmt: skip


@pytest.fixture
def project(cast):
    upload = take_in(cast.project, WHOLE)
    assert upload.state == "done", list_errors(upload)
    return cast.project


def _files(project, **more):
    rows = project.outputs.values_list("item__key", "system__name", "step")
    scores = [
        {"set": "mine", "item": item, "system": system, "step": step, "value": k / 10}
        for k, (item, system, step) in enumerate(rows)
    ]
    return {"score_sets.jsonl": [{**SET, **more}], "scores.jsonl": scores}


def test_scores_load_without_the_input_hash(project):
    upload = take_in(project, _files(project))
    assert upload.state == "done", list_errors(upload)
    scores = Score.objects.filter(score_set=ScoreSet.objects.get())
    assert scores.count() == 3
    # Each counts as a different input, so none is called a duplicate.
    assert scores.values("input_hash").distinct().count() == 3
    again = take_in(project, _files(project))
    assert all(counts["same"] == counts["rows"] for counts in again.counts.values())


@pytest.mark.parametrize("more", [{"kind": "sentinel"}, {"name": "other"}])
def test_same_set_of_another_kind_is_different(project, more):
    take_in(project, _files(project))
    upload = take_in(project, _files(project, **more))
    assert upload.state == "faulty"
    assert "is a my-metric (baseline)" in list_errors(upload)[0]


def test_scores_are_written_as_mt_metrics_eval_reads_them(project, tmp_path):
    """`metric-scores/LP/METRIC-REF.{seg,sys}.score` with lines of system, tab and score, systems in blocks, segments in
    the order of `sources`. A metric without a score for some output has no file."""
    second = {"item": "i2", "system": "t", "text": "Farewell."}
    assert take_in(project, {"outputs.jsonl": [second]}).state == "done"
    files = _files(project, references="original")
    partial = [{**row, "set": "partial"} for row in files["scores.jsonl"][:2]]
    files["score_sets.jsonl"].append({**SET, "id": "partial", "evaluator": "half", "name": "half"})
    files["scores.jsonl"] += partial
    upload = take_in(project, files)
    assert upload.state == "done", list_errors(upload)
    write_export(project, tmp_path, ExportOptions(format="mt-metrics-eval"), lambda done: None)
    ids = (tmp_path / "items/en-en.ids.txt").read_text().split()
    values = {(row["item"], row["system"]): row["value"] for row in files["scores.jsonl"] if row["set"] == "mine"}
    expected = [f"{system}\t{values[item, system]}" for system in ("s", "t") for item in ids]
    written = sorted(path.name for path in (tmp_path / "metric-scores/en-en").iterdir())
    assert written == ["my-metric-all.seg.score", "my-metric-all.sys.score"]
    assert (tmp_path / "metric-scores/en-en/my-metric-all.seg.score").read_text().splitlines() == expected
    systems = (tmp_path / "metric-scores/en-en/my-metric-all.sys.score").read_text().splitlines()
    means = {name: float(value) for name, value in (line.split("\t") for line in systems)}
    assert means == pytest.approx({name: sum(values[i, name] for i in ids) / 2 for name in ("s", "t")}, abs=1e-12)
    assert "half is left out, because 2 outputs have no score" in (tmp_path / "README.md").read_text()
