"""Deleting a project removes all of its rows and no others; the audit log stays; a large project disappears at once and
is deleted in a run."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.urls import reverse

from annotation.models import Item, Rating, TextBlock, Upload
from annotation.services.judging import get_next_assignment
from annotation.services.judging_acts import flag_assignment
from annotation.services.texts import prepare_search
from evalapp.accounts.models import ApiToken, Invitation, Membership, Project
from evalapp.accounts.selectors import get_project, my_projects
from evalapp.accounts.services import create_project, delete_project
from evalapp.common import deletion
from evalapp.common.errors import NotThere
from evalapp.common.models import AuditEvent, Run
from evalapp.common.queue import enqueue_run
from evalapp.common.runner import execute_run
from tests.annotation.services.judging_helpers import open_for, send
from tests.cast import make_cast, person
from tests.pages import read_page
from tests.taking import WHOLE, take_in


def fill(cast, project) -> None:
    """Creates rows in as many tables as a project has."""
    take_in(project, {**WHOLE, "systems.jsonl": [{"id": "s", "kind": "human"}]}, user=cast.owner)
    take_in(project, {"outputs.jsonl": [{"item": "i1", "system": "s", "text": "New.", "step": None}]}, replace=True)
    take_in(project, {"ratings.jsonl": [{"item": "none", "system": "s", "rater": "r", "aspect": "x", "value": 1}]})
    prepare_search(project=project)


def judge(cast) -> None:
    for kind in ("likert", "pairwise"):
        campaign = open_for(cast, kind)
        turn = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk)
        assert turn.shown is not None
        flag_assignment(user=cast.annotator, public=turn.shown.public, reason="other", text="odd")
        send(cast.annotator, campaign, turn.shown.public)


def census() -> dict[str, int]:
    return {
        model._meta.label: count
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and (count := model._default_manager.count())
    }


def whole(cast) -> None:
    """Checks that all earlier rows are unchanged after a second project was created and deleted."""
    other = create_project(slug="other", owner=cast.stranger)
    fill(cast, other)
    before = census()
    lines = AuditEvent.objects.count()
    project = create_project(slug="gone", owner=cast.owner)
    for user, role in ((cast.researcher, "researcher"), (cast.annotator, "annotator")):
        Membership.objects.create(project=project, user=user, role=role, pseudonym=f"p-{user.username}")
    cast.project = project
    fill(cast, project)
    judge(cast)
    from django.utils import timezone

    Invitation.objects.create(project=project, role="viewer", digest="d", expires_at=timezone.now())
    ApiToken.objects.create(
        project=project, user=cast.owner, name="t", prefix="p", digest="d", expires_at=timezone.now()
    )
    tables = {model._meta.label for model in deletion.list_owned_models()}
    filled = {label for label, count in census().items() if label in tables and count > before.get(label, 0)}
    assert len(filled) >= 22, sorted(tables - filled)
    number = project.pk
    delete_project(project=project, actor=cast.owner, confirmation="gone")
    for run in Run.objects.filter(kind="delete"):
        execute_run(run.pk)
    after = census()
    assert after.pop("common.AuditEvent") > before.pop("common.AuditEvent")
    assert after == before
    assert not Project.objects.filter(pk=number).exists()
    mine = AuditEvent.objects.filter(scope="gone")
    assert not mine.exclude(project=None).exists()
    assert {"project.created", "upload.done", "campaign.opened", "project.deleted"} <= set(
        mine.values_list("verb", flat=True)
    )
    assert AuditEvent.objects.count() == lines + mine.count()


@pytest.mark.django_db
@pytest.mark.parametrize("small", [True, False])
def test_nothing_is_left_and_nothing_foreign_is_touched(cast, monkeypatch, small):
    if not small:
        monkeypatch.setattr(deletion, "SMALL", 1)
        monkeypatch.setattr(deletion, "CHUNK", 2)
    whole(cast)


def test_same_on_postgres_in_a_run(postgres_db, monkeypatch):
    monkeypatch.setattr(deletion, "SMALL", 1)
    monkeypatch.setattr(deletion, "CHUNK", 2)
    whole(make_cast())


@pytest.fixture
def waiting(cast, monkeypatch) -> Any:
    monkeypatch.setattr(deletion, "SMALL", 1)
    fill(cast, cast.project)
    return delete_project(project=cast.project, actor=cast.owner, confirmation="alpha")


@pytest.mark.django_db
def test_large_project_disappears_at_once(cast, client, waiting):
    assert waiting.kind == "delete"
    assert Item.objects.filter(project=cast.project).exists()
    boss = person("boss")
    boss.is_superuser = True
    boss.save()
    for user in (cast.owner, cast.annotator, boss):
        assert not my_projects(user).filter(pk=cast.project.pk).exists()
        for slug in ("alpha", f"deleted-{cast.project.pk}"):
            with pytest.raises(NotThere):
                get_project(user=user, slug=slug, need="member")
    again = create_project(slug="alpha", owner=cast.owner)
    client.force_login(cast.owner)
    assert f'role="status" data-deletion="{waiting.pk}">Delete Alpha' in read_page(client.get(reverse("home")))
    execute_run(waiting.pk)
    home = read_page(client.get(reverse("home")))
    assert "data-deletion" not in home
    assert "Delete Alpha" not in home
    assert list(Project.objects.filter(slug__in=["alpha"])) == [again]
    assert not TextBlock.objects.exists()


@pytest.mark.django_db
def test_lost_run_continues_where_it_was(cast, waiting, monkeypatch):
    monkeypatch.setattr(deletion, "CHUNK", 1)
    real = deletion._end
    monkeypatch.setattr(deletion, "_end", lambda project: (_ for _ in ()).throw(MemoryError))
    execute_run(waiting.pk)
    waiting.refresh_from_db()
    assert waiting.state == Run.State.FAILED
    assert not Rating.objects.exists()
    monkeypatch.setattr(deletion, "_end", real)
    Run.objects.filter(pk=waiting.pk).update(state=Run.State.QUEUED)
    done = execute_run(waiting.pk)
    assert done is not None
    assert done.state == Run.State.SUCCEEDED
    assert not Project.objects.filter(pk=cast.project.pk).exists()


@pytest.mark.django_db
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("small", [True, False])
def test_run_of_a_deleted_project_leaves_no_traceback(cast, waiting, caplog, monkeypatch, small):
    """Deleted at once or in a run: the pipeline writes a row whose project is gone, which is not an error."""

    def pipeline(context, **_params):
        if not small:
            monkeypatch.setattr(deletion, "SMALL", -1)
        delete_project(project=Project.objects.get(slug="alpha"), actor=cast.owner, confirmation="alpha")
        Item.objects.filter(project=context.project).delete()
        Item.objects.create(project_id=context.project.pk, key="late", context=["c"], group="g")
        Project.objects.get(slug="alpha")
        return {}

    monkeypatch.setattr("evalapp.common.jobs.Job.load", lambda job: pipeline)
    run = enqueue_run(kind="search", project=cast.project, user=cast.owner, params={}, title="Search", send=False)
    ended = execute_run(run.pk)
    assert ended.state == Run.State.CANCELLED
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


def test_waiting_runs_end_and_files_are_deleted(cast):
    fill(cast, cast.project)
    run = enqueue_run(kind="export", project=cast.project, params={"format": "jsonl"}, title="Export")
    folders = [settings.UPLOADS_DIR / str(Upload.objects.first().pk), settings.EXPORTS_DIR / str(run.pk)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "file").write_text("x")
    assert delete_project(project=cast.project, actor=cast.owner, confirmation="alpha") is None
    assert not any(folder.exists() for folder in folders)
    assert not Run.objects.filter(pk=run.pk).exists()
