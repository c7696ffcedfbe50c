"""Scores computed by another program, as files (FAULTS F6)."""

from __future__ import annotations

import pytest

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
