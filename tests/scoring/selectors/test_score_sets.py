"""Valid scores, stale scores, and the dependents of an upload."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import Item, Output, Reference, ReferenceSet, Upload, WrittenReference
from annotation.services.campaigns import create_writing, open_campaign
from annotation.services.writing_later import withdraw_reference
from evalapp.common.models import Run
from scoring.models import Score, ScoreSet
from scoring.selectors.score_sets import count_of_upload, current_sets, list_states, scores_of_outputs
from tests.factories import make_items, make_outputs
from tests.writing import fill_ports, open_task_view, send

pytestmark = pytest.mark.django_db


def later_upload(project, **fields):
    return Upload.objects.create(
        project=project, title="u", state="done", finished_at=timezone.now() + timedelta(seconds=1), **fields
    )


def test_texts_but_not_ratings_make_scores_stale(scored):
    later_upload(scored.project, counts={"ratings": {"added": 5}, "outputs": {"same": 24, "replaced": 0}})
    later_upload(scored.project, counts={"references": {"added": 5}})
    assert not any(state.is_stale for state in list_states(scored.project, 24))
    named = ScoreSet.objects.filter(references="original").first()
    ScoreSet.objects.filter(pk=named.pk).update(references="more")
    assert [s.score_set.pk for s in list_states(scored.project, 24) if s.is_stale] == [named.pk]
    upload = later_upload(scored.project, counts={"outputs": {"replaced": 1}})
    assert {state.stale for state in list_states(scored.project, 24)} == {
        f"upload {upload.pk} changed items, outputs or references later"
    }


def test_older_signature_is_shown_and_not_used(scored, score):
    old = ScoreSet.objects.get(evaluator__slug="length")
    ScoreSet.objects.filter(pk=old.pk).update(signature="length|tok:words|v:0.0.9")
    score(scored.project, "length")
    states = {state.score_set.pk: state.stale for state in list_states(scored.project, 24)}
    assert states[old.pk] == "another signature was scored later"
    assert old.pk not in [row.pk for row in current_sets(scored.project)]
    assert ScoreSet.objects.filter(evaluator__slug="length").count() == 2


def test_unfinished_set_is_not_used(scored):
    ScoreSet.objects.filter(evaluator__slug="random").update(scored_at=None)
    assert "random" not in [row.evaluator.slug for row in current_sets(scored.project)]
    assert any("not finished" in state.stale for state in list_states(scored.project, 24))


def test_unfinished_sets_show_how_their_run_ended(scored):
    run = Run.objects.create(project=scored.project, kind="score", title="Score", state="running")
    ScoreSet.objects.filter(evaluator__slug="random").update(scored_at=None, run=run)

    def found():
        return next(s for s in list_states(scored.project, 24) if s.score_set.evaluator.slug == "random")

    assert found().stale == f"not finished: run {run.pk} is in progress"
    assert (found().is_under_way, found().is_unfinished, found().may_be_retried) == (True, False, False)
    Run.objects.filter(pk=run.pk).update(state="failed", error="No such device: foo.\nChoose another.")
    assert found().stale == f"failed: No such device: foo (run {run.pk})"
    assert (found().is_under_way, found().is_unfinished, found().may_be_retried) == (False, True, True)
    Run.objects.filter(pk=run.pk).update(state="cancelled")
    assert found().stale == f"not finished: run {run.pk} was cancelled"
    run.delete()
    assert (found().stale, found().may_be_retried) == ("not finished: its run was deleted", False)


def test_scores_of_some_outputs(scored):
    outputs = list(Output.objects.filter(item=Item.objects.first()).values_list("pk", flat=True))
    assert len(scores_of_outputs(scored.project, outputs)) == 3 * 3


def test_dependents_of_an_upload(scored):
    upload = later_upload(scored.project)
    assert count_of_upload(upload=upload) == 0
    Output.objects.filter(system__name="sys-a").update(upload=upload)
    assert count_of_upload(upload=upload) == 8 * 3
    Item.objects.update(upload=upload)
    assert count_of_upload(upload=upload) == Score.objects.count() == 72


def test_scores_depend_on_an_upload_that_added_to_their_references(scored):
    upload = later_upload(scored.project)
    (row, *_) = current_sets(scored.project)
    ScoreSet.objects.filter(pk=row.pk).update(references="more")
    more = ReferenceSet.objects.create(project=scored.project, name="more")
    Reference.objects.create(set=more, item=Item.objects.first(), position=0, text="x", upload=upload)
    assert count_of_upload(upload=upload) == row.n_scores > 0


def test_summary_by_system(scored):
    rows = ScoreSet.objects.get(evaluator__slug="length").summary
    assert [row["label"] for row in rows] == ["sys-a", "sys-b", "sys-c"]
    # Texts of six tokens with 0 to 3 more.
    assert rows[0]["mean"] == pytest.approx(7.5)
    assert (rows[0]["p50"], rows[0]["n"]) == (7.5, 8)


def test_visible_to(scored):
    assert ScoreSet.objects.visible_to(scored.viewer).count() == 3
    assert Score.objects.visible_to(scored.viewer).count() == 72
    for person in (scored.annotator, scored.stranger):
        assert not ScoreSet.objects.visible_to(person).exists()
        assert not Score.objects.visible_to(person).exists()


def test_later_written_references_make_scores_against_their_set_stale(cast, score, monkeypatch):
    fill_ports(monkeypatch)
    make_outputs(cast.project, make_items(cast.project, 2, 1))
    plan = {
        "name": "free", "slug": "free", "kind": "constraint", "items": {"keys": ["i000"]},
        "options": {"constraint": "free", "target": 3},
    }  # fmt: skip
    campaign = create_writing(user=cast.researcher, project=cast.project, plan=plan)
    open_campaign(user=cast.researcher, campaign=campaign)
    view = send(cast.annotator, open_task_view(cast.annotator, campaign), "Something quite else.").view
    name = WrittenReference.objects.get().set.name

    def stale() -> str:
        return next(state.stale for state in list_states(cast.project, 4) if state.score_set.references == name)

    score(cast.project, "token-f1", references=name)
    assert stale() == ""
    send(cast.annotator, view, "And something more.")
    assert stale() == f"references were added to or removed from {name} later"
    score(cast.project, "token-f1", references=name)
    assert stale() == ""
    withdraw_reference(user=cast.researcher, reference_id=WrittenReference.objects.latest("pk").pk)
    assert stale() == f"references were added to or removed from {name} later"
