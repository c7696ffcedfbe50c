"""Events of runs, and what happens to webhooks when a project is exported, deleted or backed up."""

from __future__ import annotations

import zipfile

import pytest
from django.db import OperationalError

from annotation.services.exports import request_export
from evalapp.accounts.services import delete_project
from evalapp.common.backup.tables import list_tables
from evalapp.common.jobs import Job
from evalapp.common.models import Run
from evalapp.common.queue import cancel_run, claim_run, enqueue_run, finish_run
from evalapp.common.runner import execute_run
from evalapp.events.models import Delivery, Event, Webhook
from evalapp.events.services.recording import record_event
from tests.evalapp.common.run_jobs import put_job
from tests.factories import make_items


@pytest.fixture
def kinds(monkeypatch):
    """Kinds of job that report their end, and one that does not."""
    for kind, pipeline, event in (
        ("test-good", "count", "run"), ("test-bad", "refuse", "run"), ("test-training", "refuse", "training"),
        ("test-quiet", "count", ""),
    ):  # fmt: skip
        put_job(monkeypatch, Job(kind, "cpu", f"tests.evalapp.common.run_jobs:{pipeline}", "For tests.", event=event))


def run(project, kind: str, **params) -> Run:
    return execute_run(enqueue_run(kind=kind, project=project, params=params, title="Scores of bleu", send=False).pk)


def test_ends_of_runs_are_events(cast, hook, kinds, sent):
    good = run(cast.project, "test-good", steps=1, pause=0)
    bad = run(cast.project, "test-bad")
    run(cast.project, "test-training")
    run(cast.project, "test-quiet", steps=1, pause=0)
    waiting = enqueue_run(kind="test-good", project=cast.project, params={"steps": 2}, title="x", send=False)
    cancel_run(run=waiting)
    events = list(Event.objects.order_by("pk").values_list("kind", "data", "path"))
    assert events == [
        ("run.succeeded", {"run": good.pk, "kind": "test-good", "title": "Scores of bleu"},
         f"/projects/alpha/runs/{good.pk}/"),
        ("run.failed", {"run": bad.pk, "kind": "test-bad", "title": "Scores of bleu"},
         f"/projects/alpha/runs/{bad.pk}/"),
        ("training.failed", {"run": bad.pk + 1, "kind": "test-training", "title": "Scores of bleu"},
         f"/projects/alpha/runs/{bad.pk + 1}/"),
    ]  # fmt: skip
    assert [row.event.kind for row in Delivery.objects.all()] == ["run.failed"], "what the webhook asked for"


@pytest.mark.parametrize(("kind", "state"), [("test-good", Run.State.SUCCEEDED), ("test-bad", Run.State.FAILED)])
def test_a_run_ends_even_if_its_event_cannot_be_recorded(cast, hook, kinds, monkeypatch, caplog, kind, state):
    def fail(*_arguments: object) -> None:
        raise RuntimeError("no such template")

    monkeypatch.setattr("evalapp.events.services.recording.send_event_mails", fail)
    done = run(cast.project, kind, **({"steps": 1, "pause": 0} if kind == "test-good" else {}))
    assert (done.state, done.cause == Run.Cause.MACHINE) == (state, False)
    assert (done.finished_at is not None, Event.objects.count(), Delivery.objects.count()) == (True, 0, 0)
    assert f"the end of run {done.pk} is not reported: no such template" in caplog.text


def test_the_end_of_a_run_waits_for_a_database_that_is_away(cast, kinds, monkeypatch):
    """Without its event it would end at once, and the event would be lost."""
    outages = [OperationalError("database is locked")]

    def fail_once(*_arguments: object) -> None:
        if outages:
            raise outages.pop()

    waiting = enqueue_run(kind="test-good", project=cast.project, params={}, title="Scores of bleu", send=False)
    claimed = claim_run(waiting.pk)
    monkeypatch.setattr("evalapp.events.services.recording.send_event_mails", fail_once)
    with pytest.raises(OperationalError):
        finish_run(claimed, Run.State.SUCCEEDED)
    assert finish_run(claimed, Run.State.SUCCEEDED)
    assert Event.objects.get().kind == "run.succeeded"


def test_evaluators_and_trainings_report_their_end():
    from evalapp.common.jobs import all_jobs

    reported = {job.event: set() for job in all_jobs()}
    for job in all_jobs():
        reported[job.event].add(job.kind)
    assert {"score", "combine", "judge", "robustness"} <= reported["run"]
    assert reported["training"] == {"train", "study"}
    assert {"import", "export", "rank", "delete", "plan", "judge-check"} <= reported[""]


def test_an_export_has_no_webhooks(cast, hook, sent, receiver):
    make_items(cast.project, 2)
    record_event(project=cast.project, kind="run.failed", data={"title": "hidden-title"})
    done = execute_run(request_export(project=cast.project, user=cast.owner, audit=True).pk)
    assert done.state == Run.State.SUCCEEDED, done.error
    from annotation.services.exports import get_export_folder

    (archive,) = get_export_folder(done).glob("*.zip")
    with zipfile.ZipFile(archive) as file:
        content = b"".join(file.read(name) for name in file.namelist())
    assert b"webhook.created" in content, "the audit log was asked for"
    for text in ("hidden-token", receiver.authority, hook.secret, "hidden-title"):
        assert text.encode() not in content


def test_deletion_of_the_project_deletes_them(cast, hook, sent):
    record_event(project=cast.project, kind="run.failed", data={})
    record_event(project=cast.foreign, kind="run.failed", data={})
    delete_project(project=cast.project, actor=cast.owner, confirmation="alpha")
    assert (Webhook.objects.count(), Delivery.objects.count()) == (0, 0)
    assert Event.objects.get().project == cast.foreign


def test_a_backup_has_them():
    from django.apps import apps

    names = {table.name for table in list_tables(apps)}
    assert {"events_event", "events_webhook", "events_delivery"} <= names
