"""Mails about events: to readers of the project who want them, in their language, in the transaction of the event."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.urls import reverse

from evalapp.accounts.models import User
from evalapp.common.jobs import Job
from evalapp.common.mails import deliver_mail
from evalapp.common.models import Mail, Run
from evalapp.common.queue import enqueue_run
from evalapp.common.runner import execute_run
from evalapp.events.services.recording import record_event
from tests.cast import person
from tests.evalapp.common.run_jobs import put_job
from tests.evalapp.common.smtp_server import smtp_server

CAMPAIGN = {"id": 3, "slug": "replies", "name": "Cats & <dogs>", "kind": "likert"}
DATA: dict[str, dict[str, Any]] = {
    "campaign.complete": {"campaign": CAMPAIGN, "answers": 12_000, "annotators": 7},
    "controls.failed": {"campaign": CAMPAIGN, "rater": "r-23", "failed": 3, "controls": 5},
    "progress.weekly": {
        "from": "2026-11-16", "to": "2026-11-22",
        "campaigns": [
            {**CAMPAIGN, "answers_in_week": 40, "answers": 90, "planned": 200},
            {**CAMPAIGN, "name": "Own replies", "kind": "ream", "answers_in_week": 5, "answers": 6, "planned": None},
        ],
    },
}  # fmt: skip
READERS = {"olga@example.org", "rita@example.org", "vic@example.org"}


def record(project, kind: str, **more: Any) -> list[Mail]:
    record_event(project=project, kind=kind, data=DATA[kind], path="/p/", **more)
    return list(Mail.objects.order_by("pk"))


def switch_off(user: User, *groups: str) -> None:
    User.objects.filter(pk=user.pk).update(preferences={"mails_off": list(groups)})


@pytest.mark.parametrize(
    ("kind", "subject", "text"),
    [
        ("campaign.complete", "Alpha: “Cats & <dogs>” is complete", "has all planned answers: 12,000."),
        ("controls.failed", "Alpha: failed control items in “Cats & <dogs>”", "r-23 has failed 3 of 5 control items"),
        ("progress.weekly", "Alpha: progress from 2026-11-16 to 2026-11-22", "40 new answers; 90 of 200 in all\n"),
    ],
)
def test_readers_of_the_project_get_a_mail(cast, settings, kind, subject, text):
    settings.SITE_URL = "https://evalapp.example.org"
    mails = record(cast.project, kind)
    assert {mail.to for mail in mails} == READERS, "neither annotators nor strangers"
    assert {mail.subject for mail in mails} == {subject}
    for words in (text, "Cats & <dogs>", "https://evalapp.example.org/p/", "https://evalapp.example.org/account/"):
        assert words in mails[0].body
    assert "\n\n\n" not in mails[0].body


def test_lines_of_the_week(cast):
    lines = record(cast.project, "progress.weekly")[0].body.splitlines()
    assert "Cats & <dogs>: 40 new answers; 90 of 200 in all" in lines
    assert "Own replies: 5 new texts; 6 in all" in lines


@pytest.mark.parametrize(
    ("kind", "group"),
    [("campaign.complete", "campaigns"), ("controls.failed", "controls"), ("progress.weekly", "weekly")],
)
def test_each_group_can_be_switched_off(cast, kind, group):
    switch_off(cast.owner, group)
    switch_off(cast.viewer, *({"campaigns", "controls", "runs", "weekly"} - {group}))
    assert {mail.to for mail in record(cast.project, kind)} == READERS - {"olga@example.org"}


def test_closed_accounts_and_accounts_without_address_get_none(cast):
    User.objects.filter(pk=cast.owner.pk).update(is_active=False)
    User.objects.filter(pk=cast.viewer.pk).update(email="")
    User.objects.filter(pk=cast.researcher.pk).update(email="no address")
    assert record(cast.project, "campaign.complete") == []


def test_without_a_mail_server_none_is_written(cast, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert record(cast.project, "campaign.complete") == []


def test_mails_are_in_the_language_of_the_reader(cast, monkeypatch):
    from django.utils import translation

    User.objects.filter(pk=cast.owner.pk).update(preferences={"language": "de"})
    seen = []
    monkeypatch.setattr(
        "evalapp.events.services.mails.send_mail",
        lambda *, to, **rest: seen.append((to, translation.get_language())),
    )
    record(cast.project, "campaign.complete")
    assert dict(seen) == {"olga@example.org": "de", "rita@example.org": "en-gb", "vic@example.org": "en-gb"}


def test_a_mail_of_a_rolled_back_event_is_not_written(cast):
    with transaction.atomic():
        assert len(record(cast.project, "campaign.complete")) == 3
        transaction.set_rollback(True)
    assert not Mail.objects.exists()


def test_an_event_with_a_key_is_mailed_once(cast):
    for _ in range(2):
        record(cast.project, "campaign.complete", key="judging:3")
    assert Mail.objects.count() == 3


@pytest.fixture
def run_as(cast, monkeypatch):
    def run(user: User | None, pipeline: str = "count", event: str = "run") -> Run | None:
        put_job(monkeypatch, Job("test-run", "cpu", f"tests.evalapp.common.run_jobs:{pipeline}", "x", event=event))
        params = {"steps": 1, "pause": 0} if pipeline == "count" else {}
        title = f"Scores of bleu by {user}"
        run = enqueue_run(kind="test-run", project=cast.project, user=user, params=params, title=title, send=False)
        return execute_run(run.pk)

    return run


def test_the_end_of_a_run_is_mailed_to_its_starter(cast, run_as):
    run_as(cast.researcher)
    run_as(cast.viewer, "refuse", "training")
    first, second = Mail.objects.order_by("pk")
    assert (first.to, first.subject) == ("rita@example.org", "Alpha: done: Scores of bleu by rita")
    assert (second.to, second.subject) == ("vic@example.org", "Alpha: failed: Scores of bleu by vic")
    assert "Its page says why." in second.body


def test_runs_of_others_are_not_mailed(cast, run_as):
    run_as(None)
    run_as(cast.stranger)  # is no member any more
    run_as(person("former"))
    switch_off(cast.researcher, "runs")
    run_as(cast.researcher)
    assert not Mail.objects.exists()


def test_a_mail_arrives(cast, settings):
    with smtp_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        for mail in record(cast.project, "controls.failed"):
            deliver_mail(mail.pk)
        assert {message["To"] for message in server.mails} == READERS


# ---- account ------------------------------------------------------------------------------------------------


def save_account(client, **values: Any) -> Any:
    return client.post(reverse("accounts:account"), {"first_name": "", "email": "rita@example.org", **values})


def test_mails_are_switched_off_on_the_account_page(client, cast):
    User.objects.filter(pk=cast.researcher.pk).update(preferences={"text": "large"})
    client.force_login(cast.researcher)
    form = client.get(reverse("accounts:account")).context["form"]
    assert form.initial["mails"] == ["campaigns", "controls", "runs", "weekly"], "all are on at first"
    assert save_account(client, mails=["runs"]).status_code == 302
    cast.researcher.refresh_from_db()
    assert cast.researcher.preferences == {"text": "large", "mails_off": ["campaigns", "controls", "weekly"]}
    assert client.get(reverse("accounts:account")).context["form"].initial["mails"] == ["runs"]
    save_account(client)
    cast.researcher.refresh_from_db()
    assert cast.researcher.preferences["mails_off"] == ["campaigns", "controls", "runs", "weekly"]


def test_annotators_are_not_asked_and_lose_nothing(client, cast):
    switch_off(cast.annotator, "runs")
    client.force_login(cast.annotator)
    assert "mails" not in client.get(reverse("accounts:account")).context["form"].fields
    save_account(client, email="anna@example.org")
    cast.annotator.refresh_from_db()
    assert cast.annotator.preferences == {"mails_off": ["runs"]}


def test_an_unchanged_choice_is_no_change(client, cast):
    client.force_login(cast.researcher)
    save_account(client, mails=["campaigns", "controls", "runs", "weekly"])
    cast.researcher.refresh_from_db()
    assert cast.researcher.preferences == {}
