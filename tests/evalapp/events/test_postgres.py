"""Events on PostgreSQL, with several connections."""

from __future__ import annotations

from threading import Barrier, Thread

from django.db import connection

from annotation.services.campaign_events import find_campaign_events, report_week
from annotation.services.judging import get_next_assignment
from evalapp.common.models import Mail
from evalapp.events.models import Delivery, Event
from evalapp.events.services.delivering import deliver
from evalapp.events.services.recording import record_event
from evalapp.events.services.webhooks import create_webhook
from tests.annotation.services.judging_helpers import open_for, send
from tests.cast import make_cast

from .conftest import allow, catch_messages
from .receiver import run_receiver


def run_at_once(function, n: int = 4) -> None:
    """Call a function in threads of their own, at the same time."""
    barrier = Barrier(n)

    def call() -> None:
        try:
            barrier.wait()
            function()
        finally:
            connection.close()

    threads = [Thread(target=call) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_workers_at_once_report_and_deliver_once(postgres_db, settings, monkeypatch):
    catch_messages(monkeypatch)
    project = make_cast().project
    with run_receiver() as receiver:
        allow(settings, receiver.authority, networks=("127.0.0.1/32",))
        create_webhook(project=project, actor=None, name="lab", url=receiver.url, events=["campaign.complete"])
        run_at_once(lambda: record_event(project=project, kind="campaign.complete", data={}, key="judging:3"))
        delivery = Delivery.objects.get()
        assert (Event.objects.count(), Mail.objects.count()) == (1, 3)
        run_at_once(lambda: deliver(delivery.pk))
        assert len(receiver.requests) == 1
        delivery.refresh_from_db()
        assert (delivery.state, delivery.attempts) == (Delivery.State.DELIVERED, 1)


def test_campaigns_are_found(postgres_db, monkeypatch):
    catch_messages(monkeypatch)
    cast = make_cast()
    campaign = open_for(cast)
    while (shown := get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown) is not None:
        send(cast.annotator, campaign, shown.public)
    find_campaign_events()
    done = Event.objects.get(kind="campaign.complete").created_at
    report_week(done.replace(hour=0, minute=0), done)
    (row,) = Event.objects.get(kind="progress.weekly").data["campaigns"]
    assert row["answers_in_week"] == row["answers"] == row["planned"] == campaign.unit_count
