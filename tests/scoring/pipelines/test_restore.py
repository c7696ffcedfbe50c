"""Scores and filters in an upload: invalid rows, protected rows, and refused undo."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from annotation.models import Campaign, Output, RaterFilter
from annotation.services.undo import take_back_upload
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent, Run
from evalapp.common.runner import execute_run
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Evaluator, Leaderboard, Score, ScoreSet
from scoring.pipelines.score import load_trained
from scoring.selectors.reports import check_chooser
from scoring.selectors.score_sets import list_states
from scoring.services import leaderboards
from scoring.services.combining import CombineOptions, start_combination
from scoring.services.evaluators import delete_evaluator
from scoring.services.leaderboards import get_leaderboard
from scoring.services.reports import GamesOptions, RobustnessOptions, start_games, start_robustness
from scoring.services.scores import apply_evaluator
from scoring.services.snapshots import delete_snapshot, take_snapshot
from tests.scoring.training import make_trained
from tests.taking import ITEMS, TABLE, WHOLE, list_errors, row_counts, take_in

pytestmark = pytest.mark.django_db

SET = {
    "id": "ream-1@original", "evaluator": "ream-1", "name": "ream", "kind": "trained", "options": {"seed": 13},
    "aspect": "", "references": "original", "signature": "ream|v:1|refs:original|data:0123456789abcdef",
    "short_signature": "ream|refs:original|data:0123456789abcdef", "data": "0123456789abcdef",
    "scored_at": "2026-05-01T12:00:00+00:00", "n_in_training": 1, "systems": [],
}  # fmt: skip
SCORES = [
    {"set": SET["id"], "item": "i1", "system": "s", "value": 0.5, "input": 2**62},
    {"set": SET["id"], "item": "i1", "system": "t", "value": None, "note": "empty", "empty": True, "input": -3},
    {"set": SET["id"], "item": "i2", "system": "s", "value": 0.25, "in_training": True, "input": 4},
]


def scores(*rows: dict[str, Any], of: dict[str, Any] = SET) -> dict[str, Any]:
    return {"score_sets.jsonl": [of], "scores.jsonl": list(rows or SCORES)}


def test_scores_come_with_their_outputs(cast, client):
    upload = take_in(cast.project, {**WHOLE, **scores()})
    assert upload.state == "done", list_errors(upload)
    (found,) = ScoreSet.objects.filter(project=cast.project)
    assert (found.signature, found.full_signature) == ("ream|v:1", SET["signature"])
    assert (found.n_scores, found.n_undefined, found.n_empty, found.n_in_training) == (3, 1, 1, 1)
    assert found.scored_at.isoformat() == SET["scored_at"]
    assert [row["label"] for row in found.summary] == ["s", "t"]
    assert Score.objects.get(score_set=found, value=0.5).input_hash == 2**62
    # Its weights are missing: this is reported, and it cannot be applied.
    evaluator = Evaluator.objects.get(slug="ream-1")
    assert (evaluator.state, evaluator.options) == ("damaged", {"seed": 13})
    assert "does not contain its weights" in evaluator.damage
    client.force_login(cast.viewer)
    for page in ("evaluators/", "evaluators/ream-1/", "evaluation/", "scores/"):
        assert client.get(f"/projects/alpha/{page}").status_code in (200, 404), page
    assert b"does not contain its weights" in client.get("/projects/alpha/evaluators/ream-1/").content
    # An evaluator scored here since depends on it; its own scores are removed with it.
    Score.objects.filter(score_set=found, value=0.25).delete()
    output = Output.objects.get(item__key="i2")
    Score.objects.create(score_set=found, output=output, value=0.75, input_hash=5)
    with pytest.raises(Conflict) as refused:
        take_back_upload(upload=upload, user=cast.owner)
    assert [fault.message for fault in refused.value.faults] == ["1 scores"]
    Score.objects.filter(value=0.75).delete()
    take_back_upload(upload=upload, user=cast.owner)
    assert row_counts(cast.project) == {}
    assert not Evaluator.objects.exists()


def test_evaluator_without_its_folder_cannot_be_applied(cast, monkeypatch):
    """Once, the run looked into the folder of all evaluators and failed for another reason, which the page then
    showed."""
    take_in(cast.project, {**WHOLE, **scores()})
    away = Evaluator.objects.get(slug="ream-1")
    monkeypatch.setattr("scoring.services.reports.find_sources", lambda project: SimpleNamespace(is_empty=False))
    refused = "ream-1 cannot be applied here. It was trained in another installation"
    with pytest.raises(BadInput, match=refused):
        apply_evaluator(project=cast.project, evaluator="ream-1", send=False)
    with pytest.raises(BadInput, match=refused):
        start_robustness(project=cast.project, options=RobustnessOptions("ream-1"), send=False)
    with pytest.raises(BadInput, match=refused):
        check_chooser(cast.project, "ream-1")
    with pytest.raises(BadInput, match=refused):
        load_trained(away, {})
    assert not Run.objects.exclude(kind="import").exists()
    Evaluator.objects.filter(pk=away.pk).update(name="comparative")
    with pytest.raises(BadInput, match=r"ream-1 .*another installation"):
        start_games(project=cast.project, options=GamesOptions("ream-1"), send=False)
    away.refresh_from_db()
    assert "does not contain its weights" in away.damage


def test_scores_are_as_old_as_their_upload(cast):
    """They were computed before it, from exactly the texts that came with them."""
    take_in(cast.project, {**WHOLE, **scores()})
    assert [state.stale for state in list_states(cast.project, 3)] == [""]
    grown = [{**ITEMS[0], "references": ["Hi.", "Hey.", "Hello there."]}]
    later = take_in(cast.project, {"items.jsonl": grown}, replace=True)
    (state,) = list_states(cast.project, 3)
    assert state.stale == f"upload {later.pk} changed items, outputs or references later"


def test_repeated_extended_and_changed_scores(cast):
    take_in(cast.project, {**WHOLE, **scores(*SCORES[:2])})
    more = take_in(cast.project, scores())
    assert more.counts["scores"] == {"rows": 3, "added": 1, "same": 2, "replaced": 0, "faulty": 0}
    assert ScoreSet.objects.get().n_scores == 3
    other = take_in(cast.project, scores({**SCORES[0], "value": 0.75}), replace=True)
    assert other.state == "faulty"
    assert "different score" in list_errors(other)[0]
    assert Score.objects.filter(value=0.5).exists()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (scores({**SCORES[0], "system": "nobody"}), "“nobody” has no output for the item “i1”"),
        (scores({**SCORES[0], "step": 7}), "“s” has no output of step 7 for the item “i1”"),
        (scores({**SCORES[0], "set": "x"}), "does not describe the score set “x”"),
        (scores(SCORES[0], SCORES[0]), "The same key is already used in scores.jsonl:1"),
        (scores({**SCORES[0], "input": "4"}), "input must be the hash of the scored input"),
        (scores(of={**SET, "scored_at": "yesterday"}), "scored_at must be a date and time with time zone"),
        (scores(of={**SET, "kind": "oracle"}), "kind must be one of sentinel"),
        (scores(of={k: v for k, v in SET.items() if k != "short_signature"}), "short_signature is missing"),
        (scores(of={**SET, "signature": "", "name": ""}), "signature is missing"),
        (scores(of={**SET, "n_in_training": "many"}), "n_in_training must be a whole number"),
        (scores(of={**SET, "evaluator": "My metric/2"}), "“My metric/2” cannot name an evaluator"),
        ({"filters.jsonl": [{"name": "Slow!", "raters": ["r"]}]}, "name must consist of at most 63 lower-case letters"),
        ({"filters.jsonl": [{"name": "slow", "raters": []}]}, "at least one rater"),
        ({"campaigns.jsonl": [{"campaign": "c", "kind": "likert"}]}, "told must be an object"),
    ],
)
def test_errors(cast, files, message):
    upload = take_in(cast.project, {**WHOLE, **files})
    assert upload.state == "faulty"
    assert message in "; ".join(list_errors(upload))
    assert not ScoreSet.objects.exists()


def test_undo_removes_an_upload_of_scores_only(cast):
    """Each upload has its own scores; the set and its evaluator are removed with the last one."""
    take_in(cast.project, WHOLE)
    slow = {"name": "slow", "raters": ["r"], "reason": "slow"}
    table = {"kind": "systems", "params": {"aspect": "quality"}, "table": TABLE}
    files = {**scores(*SCORES[:2]), "filters.jsonl": [slow], "leaderboard.json": {"tables": [table]}}
    first, second = take_in(cast.project, files), take_in(cast.project, scores())
    assert ScoreSet.objects.get().n_scores == 3
    with pytest.raises(Conflict) as refused:
        take_back_upload(upload=first, user=cast.owner)
    assert [fault.message.split()[:2] for fault in refused.value.faults] == [["1", "later"]]
    take_back_upload(upload=second, user=cast.owner)
    left = ScoreSet.objects.get()
    assert (left.n_scores, left.n_in_training, [row["n"] for row in left.summary]) == (2, 0, [1, 0])
    take_back_upload(upload=first, user=cast.owner)
    for model in (Score, ScoreSet, Evaluator, Leaderboard, RaterFilter):
        assert not model.objects.exists()
    removed = AuditEvent.objects.filter(verb="upload.undone").latest("pk").detail["removed"]
    assert removed == {"scores": 2, "score sets": 1, "tables": 1, "filters": 1}


def test_undo_keeps_a_filter_used_since(scored):
    """Once, it was removed, and another could take the name that signatures of snapshots and combinations contain."""
    slow = {"name": "slow", "raters": ["r1"], "reason": "slow"}
    upload = take_in(scored.project, {"filters.jsonl": [slow]})
    get_leaderboard(project=scored.project, query=SystemsQuery(filter="slow"))  # viewed, nothing more
    take_snapshot(project=scored.project, query=SystemsQuery(filter="slow"), slug="kept")
    options = CombineOptions(("length", "token-f1"), "stacked", "stack", filter="slow")
    assert execute_run(start_combination(project=scored.project, options=options, send=False).pk).state == "succeeded"
    with pytest.raises(Conflict) as refused:
        take_back_upload(upload=upload, user=scored.owner)
    assert [fault.message.split()[:2] for fault in refused.value.faults] == [["2", "snapshots"]]
    delete_snapshot(project=scored.project, slug="kept")
    delete_evaluator(evaluator=Evaluator.objects.get(slug="stack"))
    take_back_upload(upload=upload, user=scored.owner)
    assert not RaterFilter.objects.exists()


def test_filters_never_change_and_local_campaigns_take_precedence(cast):
    slow = {"name": "slow", "raters": ["r"], "reason": "slow", "withdrawn_at": "2026-05-01T12:00:00+00:00"}
    told = {"campaign": "c", "kind": "likert", "told": {"units": 3}}
    take_in(cast.project, {**WHOLE, "filters.jsonl": [slow], "campaigns.jsonl": [told]})
    assert not RaterFilter.objects.get(project=cast.project).is_active
    other = take_in(cast.project, {"filters.jsonl": [{**slow, "raters": ["q"]}]}, replace=True)
    assert "other raters" in list_errors(other)[0]
    changed = {**told, "told": {"units": 4}}
    assert "other content" in list_errors(take_in(cast.project, {"campaigns.jsonl": [changed]}))[0]
    assert take_in(cast.project, {"campaigns.jsonl": [changed]}, replace=True).state == "done"
    Campaign.objects.create(project=cast.project, slug="own", name="Own", kind="likert")
    own = take_in(cast.project, {"campaigns.jsonl": [{**told, "campaign": "own"}]})
    assert own.counts["campaigns"]["same"] == 1


def test_invalid_table_is_refused_before_anything_is_stored(cast, client, monkeypatch):
    """Once, one without a method broke the project overview with an error 500 until it was recomputed."""
    sound = {"kind": "systems", "params": {"aspect": "quality"}, "table": TABLE}
    bare = {**sound, "table": {"kind": "systems", "rows": [{"label": "s"}]}}
    newer = {**sound, "params": {"aspect": "quality", "mood": "good"}}
    for table, told in (
        (7, "leaderboard.json: tables[1] must be an object."),
        (bare, "leaderboard.json: tables[1].table.aspect is missing."),
        (newer, "leaderboard.json: tables[1].params.mood is unknown; was the export made by a newer version?"),
    ):
        upload = take_in(cast.project, {**WHOLE, "leaderboard.json": {"tables": [sound, table]}})
        assert (upload.state, list_errors(upload)) == ("faulty", [told])
    assert not Leaderboard.objects.exists()
    assert not Output.objects.exists()
    assert take_in(cast.project, {**WHOLE, "leaderboard.json": {"tables": [sound]}}).state == "done"
    client.force_login(cast.viewer)
    assert client.get("/projects/alpha/").status_code == 200
    # Large projects use the uploaded table until their own is ready.
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 0)
    answer = client.get("/api/v1/projects/alpha/leaderboards/systems/?aspect=quality")
    assert (answer.status_code, answer.json()["is_current"]) == (200, False)
    assert answer.json()["run"] is not None


def told(weights: str, name: str = "ream-1@original") -> dict[str, Any]:
    """The score set from the export of an evaluator with these weights."""
    return {**SET, "id": name, "signature": SET["signature"].replace("|v:1", f"|w:{weights}|v:1")}


def test_scores_of_another_evaluator_with_the_same_name_are_refused(cast):
    """Once, they became scores of the evaluator trained here."""
    ours = make_trained(cast.project, "ream-1", name="ream")
    Evaluator.objects.filter(pk=ours.pk).update(signature="ream|w:0a0a0a0a|v:1")
    other = take_in(cast.project, {**WHOLE, **scores(of=told("0b0b0b0b"))})
    assert other.state == "faulty"
    assert all(words in list_errors(other)[0] for words in ("different ream", "weights 0a0a0a0a"))
    assert not ScoreSet.objects.exists()
    same = take_in(cast.project, {**WHOLE, **scores(of=told("0a0a0a0a"))})
    assert same.state == "done", list_errors(same)
    assert ScoreSet.objects.get().evaluator == ours
    # Two in one upload, and a combination of others.
    rows = [{**told(weights, f"new@{weights}"), "evaluator": "new"} for weights in ("0c0c0c0c", "0d0d0d0d")]
    twice = take_in(cast.project, {"score_sets.jsonl": rows})
    assert "weights 0c0c0c0c" in list_errors(twice)[0]
    both = {**SET, "id": "both", "evaluator": "both", "name": "combined", "kind": "combined", "signature": "combined"}
    Evaluator.objects.create(
        project=cast.project, slug="both", name="combined", kind="combined", options={"parts": ["length", "chrf"]}
    )
    combined = take_in(cast.project, {"score_sets.jsonl": [{**both, "options": {"parts": ["length", "bleu"]}}]})
    assert all(words in list_errors(combined)[0] for words in ("“both”", "different combination"))
