"""Deliveries to a real receiver: signed, in the transaction of the event, again after failures, given up, redelivered;
nothing about the address or the secret is left behind."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from evalapp.common.errors import Conflict
from evalapp.common.models import AuditEvent
from evalapp.events.models import Delivery, Event
from evalapp.events.services import sending, signing
from evalapp.events.services.delivering import OUTBOX, deliver, resend_deliveries
from evalapp.events.services.recording import record_event
from evalapp.events.services.webhooks import (
    create_webhook,
    delete_webhook,
    redeliver,
    renew_secret,
    send_test,
    update_webhook,
)
from evalapp.events.tasks import delete_old_events_daily
from evalapp.layout import FILES

from .conftest import catch_messages
from .receiver import Request

DATA = {"campaign": {"id": 3, "name": "Café 猫"}}


def record(project, **fields: Any) -> Event | None:
    return record_event(**{"project": project, "kind": "campaign.complete", "data": DATA, "path": "/p/", **fields})


def make_due(delivery: Delivery) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(due_at=timezone.now() - timedelta(seconds=1))


def is_signed(request: Request, secret: str) -> bool:
    """Check a signature by the lines of the documentation."""
    page = (FILES / "docs/how-to/webhooks.md").read_text()
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    return names["is_genuine"](request.headers, request.body, secret)


def test_signature_of_the_specification():
    """The example of standardwebhooks.com and of its libraries."""
    secret, message = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    signature = signing.sign(secret, message, 1_614_265_330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_event_reaches_the_receiver_signed(cast, hook, receiver, sent, settings):
    settings.SITE_URL = "https://evalapp.example.org"
    event = record(cast.project)
    delivery = deliver(Delivery.objects.get(event=event).pk)
    assert (delivery.state, delivery.status, delivery.attempts) == ("delivered", 204, 1)
    (request,) = receiver.requests
    assert request.path == "/in?token=hidden-token"
    assert request.headers["Host"] == receiver.authority
    assert request.headers["webhook-id"] == str(event.public)
    assert abs(int(request.headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    assert is_signed(request, hook.secret)
    assert not is_signed(Request("", request.headers, request.body + b" "), hook.secret)
    old = {**request.headers, "webhook-timestamp": str(int(request.headers["webhook-timestamp"]) - 301)}
    assert not is_signed(Request("", old, request.body), hook.secret)
    assert json.loads(request.body) == {
        "id": str(event.public), "type": "campaign.complete", "timestamp": event.created_at.isoformat(),
        "project": "alpha", "url": "https://evalapp.example.org/p/", "data": DATA,
    }  # fmt: skip


def test_only_chosen_events_of_the_own_project_are_sent(cast, hook, sent):
    record(cast.project, kind="run.succeeded")
    record(cast.foreign)
    assert not Delivery.objects.exists()
    update_webhook(webhook=hook, actor=None, active=False)
    record(cast.project)
    assert not Delivery.objects.exists()


def test_an_event_is_sent_after_its_transaction(cast, hook, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        record(cast.project)
        assert sent == []
    assert sent == [Delivery.objects.get().pk]


@pytest.mark.django_db(transaction=True)
def test_an_event_that_is_rolled_back_is_never_sent(cast, hook, receiver, sent):
    with transaction.atomic():
        record(cast.project)
        assert Delivery.objects.count() == 1
        transaction.set_rollback(True)
    resend_deliveries()
    assert (sent, Delivery.objects.count(), Event.objects.count()) == ([], 0, 0)


def test_an_event_is_sent_although_the_queue_was_down(cast, hook, receiver, monkeypatch):
    """The message is lost; the reconciler sends another one, and a second message does no harm."""

    def fail(*arguments: Any, **options: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr("evalapp.celery.app.send_task", fail)
    record(cast.project)
    assert resend_deliveries() == 0
    ids = catch_messages(monkeypatch)
    assert resend_deliveries() == 1
    assert resend_deliveries() == 0
    assert deliver(ids[0]) is not None
    assert deliver(ids[0]) is None
    assert len(receiver.requests) == 1


def test_a_lost_worker_does_not_lose_a_delivery(cast, hook, receiver, sent):
    """A worker that dies between claim and answer: after the lease the delivery is due again, with the same id."""
    record(cast.project)
    delivery = Delivery.objects.get()
    Delivery.objects.update(attempts=1, due_at=timezone.now() + timedelta(minutes=1), queued_at=timezone.now())
    assert deliver(delivery.pk) is None
    make_due(delivery)
    Delivery.objects.update(queued_at=timezone.now() - timedelta(hours=1))
    assert resend_deliveries() == 1
    assert deliver(delivery.pk).state == Delivery.State.DELIVERED


def test_a_failure_is_tried_again_after_growing_waits(cast, hook, receiver, sent):
    receiver.answers = [500, 503, 204]
    event = record(cast.project)
    delivery = Delivery.objects.get()
    for attempt, status in enumerate((500, 503)):
        before = timezone.now()
        delivery = deliver(delivery.pk)
        assert (delivery.state, delivery.problem, delivery.status) == ("waiting", "status", status)
        assert before + OUTBOX.waits[attempt] <= delivery.due_at <= timezone.now() + OUTBOX.waits[attempt]
        assert deliver(delivery.pk) is None, "not due yet"
        make_due(delivery)
    assert deliver(delivery.pk).state == Delivery.State.DELIVERED
    assert list(OUTBOX.waits) == sorted(set(OUTBOX.waits))
    assert {request.headers["webhook-id"] for request in receiver.requests} == {str(event.public)}
    assert len({request.body for request in receiver.requests}) == 1
    assert all(is_signed(request, hook.secret) for request in receiver.requests)


def test_a_delivery_is_given_up_and_can_be_repeated(cast, hook, receiver, sent):
    receiver.answers = [500]
    event = record(cast.project)
    first = Delivery.objects.get()
    for _ in range(len(OUTBOX.waits) + 1):
        make_due(first)
        first = deliver(first.pk)
    assert (first.state, first.attempts) == (Delivery.State.FAILED, len(OUTBOX.waits) + 1)
    make_due(first)
    assert deliver(first.pk) is None
    entry = AuditEvent.objects.get(verb="webhook.failed")
    assert (entry.object, entry.detail) == ("lab", {"event": "campaign.complete", "problem": "status"})
    receiver.answers = [200]
    second = redeliver(delivery=first, actor=cast.owner)
    with pytest.raises(Conflict, match="already waiting"):
        redeliver(delivery=first, actor=cast.owner)
    assert deliver(second.pk).state == Delivery.State.DELIVERED
    assert receiver.requests[-1].headers["webhook-id"] == str(event.public)
    assert redeliver(delivery=second, actor=cast.owner).pk != second.pk, "a delivered event can be sent again"
    assert AuditEvent.objects.filter(verb="webhook.redelivered").count() == 2


def test_a_slow_receiver_is_a_failure(cast, hook, receiver, sent, monkeypatch):
    monkeypatch.setattr(sending, "CONNECT_SECONDS", 0.2)
    receiver.pause = 0.6
    record(cast.project)
    delivery = deliver(Delivery.objects.get().pk)
    assert (delivery.state, delivery.problem) == (Delivery.State.WAITING, Delivery.Problem.SLOW)


def test_a_receiver_that_drips_is_cut(cast, hook, receiver, sent, monkeypatch):
    """Each line arrives within the limit of the connection; the whole answer does not."""
    monkeypatch.setattr(sending, "TOTAL_SECONDS", 0.5)
    receiver.drip = 50
    record(cast.project)
    delivery = deliver(Delivery.objects.get().pk)
    assert (delivery.state, delivery.problem) == (Delivery.State.WAITING, Delivery.Problem.SLOW)


def test_a_long_answer_is_not_read(cast, hook, receiver, sent):
    receiver.answers, receiver.size = [200], 50_000_000
    record(cast.project)
    assert deliver(Delivery.objects.get().pk).state == Delivery.State.DELIVERED
    assert receiver.written < receiver.size


def test_redirects_are_not_followed(cast, hook, receiver, sent):
    receiver.answers = [307]
    record(cast.project)
    delivery = deliver(Delivery.objects.get().pk)
    assert (delivery.state, delivery.problem, delivery.status) == ("waiting", "redirect", 307)
    assert [request.path for request in receiver.requests] == ["/in?token=hidden-token"]


def test_test_button(cast, hook, receiver, sent):
    other, _ = create_webhook(
        project=cast.project, actor=None, name="other", url=receiver.url, events=["campaign.complete"]
    )
    delivery = deliver(send_test(webhook=hook, actor=cast.owner).pk)
    assert delivery.state == Delivery.State.DELIVERED
    assert json.loads(receiver.requests[0].body)["type"] == "webhook.test"
    assert not other.deliveries.exists()
    update_webhook(webhook=hook, actor=None, active=False)
    with pytest.raises(Conflict, match="switched off"):
        send_test(webhook=hook, actor=cast.owner)


def test_a_renewed_secret_signs_later_requests(cast, hook, receiver, sent):
    secret = renew_secret(webhook=hook, actor=cast.owner)
    assert secret != hook.secret
    record(cast.project)
    deliver(Delivery.objects.get().pk)
    assert is_signed(receiver.requests[0], secret)
    assert not is_signed(receiver.requests[0], hook.secret)


def test_with_another_secret_key_nothing_is_sent(cast, hook, receiver, sent, settings):
    """A backup restored elsewhere does not send the deliveries that were waiting."""
    record(cast.project)
    settings.SECRET_KEY = "another " * 8
    delivery = deliver(Delivery.objects.get().pk)
    assert (delivery.state, delivery.problem, receiver.requests) == ("waiting", "secret", [])


def test_deliveries_of_a_webhook_that_is_off_end(cast, hook, receiver, sent):
    record(cast.project)
    update_webhook(webhook=hook, actor=None, active=False)
    delivery = deliver(Delivery.objects.get().pk)
    assert (delivery.state, delivery.problem, receiver.requests) == ("failed", "off", [])


def test_secret_and_address_are_in_no_log_and_no_audit(cast, hook, receiver, sent, caplog):
    caplog.set_level(logging.DEBUG)
    receiver.answers = [500]
    record(cast.project)
    delivery = deliver(Delivery.objects.get().pk)
    update_webhook(webhook=hook, actor=cast.owner, url=receiver.url + "2")
    secret = renew_secret(webhook=hook, actor=cast.owner)
    receiver.answers = [302]
    redelivered = deliver(send_test(webhook=hook, actor=cast.owner).pk)
    delete_webhook(webhook=hook, actor=cast.owner)
    entries = [str((row.verb, row.object, row.detail)) for row in AuditEvent.objects.filter(project=cast.project)]
    assert sum("webhook." in entry for entry in entries) == 5
    for text in [*entries, caplog.text, str(delivery), str(redelivered), repr(hook)]:
        assert "hidden-token" not in text
        assert "127.0.0.1" not in text
        assert secret not in text
        assert hook.secret not in text
    assert not any(hook.secret in str(value) for value in vars(hook) if value != "secret")


def test_the_database_has_no_secret(cast, hook):
    stored = Delivery.webhook.field.related_model.objects.filter(pk=hook.pk).values().get()
    assert hook.secret not in stored.values()
    assert hook.secret.removeprefix(signing.PREFIX) not in str(stored)


def test_old_rows_are_deleted_but_no_event_is_reported_twice(cast, hook, receiver, sent):
    old = timezone.now() - OUTBOX.retention - timedelta(hours=1)
    record(cast.project)
    record(cast.project, key="judging:3")
    waiting = record(cast.project)
    for delivery in Delivery.objects.exclude(event=waiting):
        deliver(delivery.pk)
    Event.objects.update(created_at=old)
    Delivery.objects.filter(state=Delivery.State.DELIVERED).update(finished_at=old)
    delete_old_events_daily()
    assert set(Event.objects.values_list("key", "deliveries__state")) == {("judging:3", None), ("", "waiting")}
    assert record(cast.project, key="judging:3") is None
