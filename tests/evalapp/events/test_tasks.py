"""Webhooks by real workers and a real Redis: an event of a committed transaction arrives, also again after a failure;
the scheduler's tasks exist."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from evalapp import celery
from evalapp.common.outbox import QUEUE
from evalapp.events.models import Delivery
from evalapp.events.services.delivering import resend_deliveries
from evalapp.events.services.recording import record_event
from evalapp.events.services.webhooks import create_webhook
from tests.cast import make_cast
from tests.evalapp.common.conftest import Installation, database_file, installed, wait_until
from tests.services.plugin import empty_redis

from .conftest import allow
from .receiver import run_receiver


def test_every_scheduled_task_exists():
    celery.app.loader.import_default_modules()
    names = {entry["task"] for entry in celery.app.conf.beat_schedule.values()}
    expected = {"evalapp.watch_events", "evalapp.report_week", "evalapp.delete_old_mails", "evalapp.delete_old_events"}
    assert expected <= names <= set(celery.app.tasks)
    assert "evalapp.deliver_event" in celery.app.tasks


@pytest.fixture
def installation(tmp_path: Path, migrated_file: Path, django_db_blocker: Any) -> Iterator[Installation]:
    with (
        database_file(tmp_path, migrated_file, django_db_blocker),
        empty_redis() as url,
        installed(tmp_path, url) as made,
    ):
        yield made


@pytest.mark.slow
@pytest.mark.server("redis")
def test_a_worker_delivers_and_tries_again(installation, settings):
    with run_receiver() as receiver:
        allow(settings, receiver.authority, networks=("127.0.0.1/32",))
        installation.env |= {"WEBHOOK_HOSTS": receiver.authority, "SECRET_KEY": settings.SECRET_KEY}
        receiver.answers = [500, 204]
        project = make_cast().project
        create_webhook(project=project, actor=None, name="lab", url=receiver.url, events=["run.failed"])
        installation.start_worker(queues=QUEUE)
        event = record_event(project=project, kind="run.failed", data={"run": 7})
        assert event is not None
        wait_until(lambda: Delivery.objects.filter(attempts=1, status=500).exists())
        Delivery.objects.update(due_at=timezone.now() - timedelta(seconds=1))
        assert resend_deliveries() == 1
        wait_until(lambda: Delivery.objects.filter(state=Delivery.State.DELIVERED).exists())
        assert [request.headers["webhook-id"] for request in receiver.requests] == [str(event.public)] * 2
