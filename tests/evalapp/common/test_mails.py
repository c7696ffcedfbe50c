"""Mails by the workers: written with the action, tried again, given up, without secrets and addresses left behind."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evalapp.common import outbox
from evalapp.common.errors import BadInput
from evalapp.common.mails import (
    OUTBOX,
    cancel_mails,
    deliver_mail,
    is_mail_set_up,
    resend_mails,
    send_mail,
    site_address,
)
from evalapp.common.models import AuditEvent, Mail
from evalapp.common.tasks import delete_old_mails_daily
from evalapp.events.services.delivering import resend_deliveries

from .smtp_server import smtp_server

CONTEXT = {
    "project": "Cats & <dogs>", "sender": "Anna", "role": "Annotator", "until": "1 May", "link": "https://site/x/",
}  # fmt: skip


@pytest.fixture
def server(settings):
    with smtp_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        yield server


@pytest.fixture
def sent(monkeypatch) -> list[int]:
    """Ids of mails whose messages were sent to the queue."""
    ids: list[int] = []
    monkeypatch.setattr("evalapp.celery.app.send_task", lambda name, args, **options: ids.extend(args))
    return ids


def write(project=None, name=CONTEXT["project"]) -> Mail:
    context, template = {**CONTEXT, "project": name}, "accounts/mails/invitation"
    return send_mail(to="rita@example.org", template=template, context=context, project=project, about="invitation:1")


def make_due(mail: Mail) -> None:
    Mail.objects.filter(pk=mail.pk).update(due_at=timezone.now() - timedelta(seconds=1))


def test_mail_reaches_the_server_as_plain_text(db, server):
    mail = deliver_mail(write(name="Katzen 猫\nBcc: eve@example.org").pk)
    assert (mail.state, mail.body) == (Mail.State.SENT, "")
    (message,) = server.mails
    assert (message["To"], message["Bcc"]) == ("rita@example.org", None)
    assert message["Subject"] == "Invitation to Katzen 猫 Bcc: eve@example.org"
    assert message.get_content_type() == "text/plain"
    assert "https://site/x/" in message.get_content()


def test_texts_are_not_escaped_for_html(db):
    mail = write()
    assert mail.subject == "Invitation to Cats & <dogs>"
    assert 'to the project "Cats & <dogs>"' in mail.body


def test_a_mail_leaves_after_the_transaction_and_only_once(db, server, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        mail = write()
        assert sent == []
    assert sent == [mail.pk]
    assert deliver_mail(mail.pk) is not None
    assert deliver_mail(mail.pk) is None
    assert len(server.mails) == 1


def test_a_server_that_fails_is_tried_again_and_then_given_up(cast, server):
    server.reply = "451 later"
    mail = write(project=cast.project)
    for wait in OUTBOX.waits:
        make_due(mail)
        before = timezone.now()
        mail = deliver_mail(mail.pk)
        assert (mail.state, mail.error) == (Mail.State.WAITING, "SMTPRecipientsRefused (451)")
        assert mail.due_at >= before + wait
        assert mail.body
        assert deliver_mail(mail.pk) is None  # not yet due
    make_due(mail)
    mail = deliver_mail(mail.pk)
    assert (mail.state, mail.body, mail.attempts) == (Mail.State.FAILED, "", len(OUTBOX.waits) + 1)
    event = AuditEvent.objects.get(verb="mail.failed")
    assert (event.object, event.detail) == ("invitation:1", {"error": "SMTPRecipientsRefused (451)"})


def test_a_retried_mail_arrives(db, server):
    server.reply = "451 later"
    mail = deliver_mail(write().pk)
    server.reply = "250 accepted"
    make_due(mail)
    mail = deliver_mail(mail.pk)
    assert (mail.state, mail.error, len(server.mails)) == (Mail.State.SENT, "", 1)


def test_an_address_that_the_server_refuses_is_given_up_at_once_and_not_logged(db, server, caplog):
    server.reply = "550 rita@example.org: no such person"
    mail = deliver_mail(write().pk)
    assert (mail.state, mail.error) == (Mail.State.FAILED, "SMTPRecipientsRefused (550)")
    assert "was not sent" in caplog.text
    assert "rita@" not in caplog.text


def test_a_server_that_is_down_is_named_by_its_error(db, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    mail = deliver_mail(write().pk)
    assert (mail.state, mail.error) == (Mail.State.WAITING, "ConnectionRefusedError (Connection refused)")


def test_lost_messages_are_sent_again_and_old_rows_go(db, sent):
    lost, fresh, later, old = (write() for _ in range(4))
    now = timezone.now()
    Mail.objects.filter(pk=lost.pk).update(queued_at=now - timedelta(minutes=11))
    Mail.objects.filter(pk=fresh.pk).update(queued_at=now)
    Mail.objects.filter(pk=later.pk).update(due_at=now + timedelta(minutes=1))
    Mail.objects.filter(pk=old.pk).update(state=Mail.State.SENT, finished_at=now - timedelta(days=31))
    assert resend_mails() == 1
    assert sent == [lost.pk]
    assert resend_mails() == 0
    assert Mail.objects.count() == 4
    delete_old_mails_daily()
    assert not Mail.objects.filter(pk=old.pk).exists()
    assert Mail.objects.count() == 3


def test_looking_for_lost_messages_deletes_nothing(db, sent, django_assert_num_queries):
    """It happens every few seconds; deleting old rows reads the whole table."""
    with django_assert_num_queries(1):
        assert resend_mails() == 0
    with django_assert_num_queries(1):
        assert resend_deliveries() == 0


def test_without_the_queue_a_mail_waits_in_the_database(db, monkeypatch, django_capture_on_commit_callbacks):
    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError("no queue")

    monkeypatch.setattr("evalapp.celery.app.send_task", refuse)
    with django_capture_on_commit_callbacks(execute=True):
        mail = write()
    mail.refresh_from_db()
    assert (mail.state, mail.queued_at) == (Mail.State.WAITING, None)


def test_withdrawn_mails_are_not_sent(db, server):
    mail = write()
    assert cancel_mails(about="invitation:1") == 1
    assert deliver_mail(mail.pk) is None
    mail.refresh_from_db()
    assert (mail.state, mail.body, server.mails) == (Mail.State.CANCELLED, "", [])


def test_a_mail_that_is_withdrawn_during_a_failing_attempt_is_not_tried_again(db, monkeypatch):
    def withdraw(_message: object) -> None:
        assert cancel_mails(about="invitation:1") == 1
        raise TimeoutError

    monkeypatch.setattr("evalapp.common.mails.EmailMessage.send", withdraw)
    mail = deliver_mail(write().pk)
    mail.refresh_from_db()
    assert (mail.state, mail.body) == (Mail.State.CANCELLED, "")


def test_an_invalid_address_is_refused(db):
    with pytest.raises(BadInput, match="is not an e-mail address"):
        send_mail(to="rita@example.org\nBcc: eve@example.org", template="accounts/mails/invitation", context=CONTEXT)
    assert not Mail.objects.exists()


@pytest.mark.parametrize(("backend", "ready"), [("console", False), ("dummy", False), ("smtp", True)])
def test_mail_is_set_up_with_a_server(settings, backend, ready):
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"
    assert is_mail_set_up() is ready


def test_links_in_mails_begin_with_the_address_of_the_site(settings):
    settings.SITE_URL = "https://evalapp.example.org"
    assert site_address("/sub/my/") == "https://evalapp.example.org/sub/my/"


def test_only_owners_see_the_mails_of_a_project(cast):
    write(project=cast.project)
    assert Mail.objects.visible_to(cast.owner).count() == 1
    assert Mail.objects.visible_to(cast.researcher).count() == 0


def test_workers_send_outside_of_the_queue_of_online_scores():
    assert outbox.QUEUE != "live"
