"""The pages of webhooks: the secret is shown once, the log of deliveries, test, repeat, renew, delete."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from evalapp.events.models import Delivery, Webhook
from evalapp.events.services import signing
from evalapp.events.services.delivering import deliver
from evalapp.events.services.recording import record_event
from evalapp.events.services.webhooks import create_webhook

from .conftest import allow


@pytest.fixture
def owner(client, cast):
    client.force_login(cast.owner)
    return client


def find_secret(html: str) -> str | None:
    found = re.search(r'value="(whsec_[^"]+)"', html)
    return found[1] if found else None


def url(name: str, hook: Webhook, *more: int) -> str:
    return reverse(f"events:{name}", args=[hook.project.slug, hook.pk, *more])


def test_a_webhook_is_created_and_its_secret_shown_once(owner, cast, receiver, sent):
    values = {"name": "lab", "url": receiver.url, "events": ["run.failed", "campaign.complete"]}
    response = owner.post(reverse("events:webhook-new", args=["alpha"]), values)
    hook = Webhook.objects.get()
    secret = find_secret(response.content.decode())
    assert secret is not None
    assert secret == signing.find_secret(hook)
    assert response.headers["Cache-Control"] == "no-store"
    assert hook.events == ["campaign.complete", "run.failed"]
    shown = owner.get(url("webhook", hook)).content.decode()
    assert "whsec_" not in shown
    renewed = find_secret(owner.post(url("webhook-renew", hook)).content.decode())
    assert renewed not in (None, secret)


def test_faults_are_shown_at_their_fields(owner, cast, settings):
    allow(settings, "hooks.example.org")
    values = {"name": "lab", "url": "https://elsewhere.example.org/", "events": ["run.failed"]}
    response = owner.post(reverse("events:webhook-new", args=["alpha"]), values)
    assert response.status_code == 422
    assert response.context["form"].errors["url"] == [
        "The host elsewhere.example.org is not allowed. An administrator can add it to the setting WEBHOOK_HOSTS."
    ]
    assert not Webhook.objects.exists()


def test_names_are_unique(owner, hook, receiver):
    values = {"name": "lab", "url": receiver.url, "events": ["run.failed"]}
    response = owner.post(reverse("events:webhook-new", args=["alpha"]), values)
    assert "already a webhook" in response.context["form"].errors["name"][0]


def test_without_the_setting_the_pages_say_that_webhooks_are_off(owner, cast):
    for name in ("webhook-list", "webhook-new"):
        assert "WEBHOOK_HOSTS" in owner.get(reverse(f"events:{name}", args=["alpha"])).content.decode()


def test_settings_are_changed(owner, hook, receiver):
    values = {"name": "Labor", "url": receiver.url, "events": ["run.failed"]}
    assert owner.post(url("webhook", hook), values).status_code == 302
    hook.refresh_from_db()
    assert (hook.name, hook.events, hook.active) == ("Labor", ["run.failed"], False)


def test_log_and_repeat(owner, hook, receiver, sent):
    receiver.answers = [500]
    record_event(project=hook.project, kind="run.failed", data={})
    first = deliver(Delivery.objects.get().pk)
    shown = owner.get(url("webhook", hook)).content.decode()
    assert "The receiver refused the event. (500)" in shown
    assert "Send again" not in shown, "it is waiting"
    Delivery.objects.update(state=Delivery.State.FAILED)
    assert "Send again" in owner.get(url("webhook", hook)).content.decode()
    assert owner.post(url("delivery-repeat", hook, first.pk)).status_code == 302
    assert hook.deliveries.filter(state=Delivery.State.WAITING).count() == 1


def test_a_refused_name_is_not_shown_as_that_of_the_webhook(owner, hook, receiver):
    values = {"name": "lab", "url": receiver.url, "events": ["run.failed"]}
    create_webhook(project=hook.project, actor=None, **{**values, "name": "other"})
    response = owner.post(url("webhook", hook), {**values, "name": "other"})
    assert (response.status_code, response.context["webhook"].name) == (422, "lab")


def test_the_log_is_updated_while_something_is_sent_and_keeps_its_place(owner, hook, receiver, sent):
    for number in range(21):
        record_event(project=hook.project, kind="run.failed", data={"run": number})
    first = owner.get(url("webhook", hook))
    second = owner.get(url("webhook", hook) + f"?cursor={first.context['page'].next}")
    for response in (first, second):
        assert f'hx-get="{response.wsgi_request.get_full_path()}"' in response.content.decode()
    receiver.answers = [500]
    (row,) = second.context["page"].rows
    deliver(row.pk)
    assert "hx-get" not in owner.get(second.wsgi_request.get_full_path()).content.decode(), "it waits for a minute"


def test_test_button_and_deletion(owner, hook, sent):
    assert owner.post(url("webhook-test", hook)).status_code == 302
    assert hook.deliveries.get().event.kind == "webhook.test"
    assert "Test" in owner.get(url("webhook", hook)).content.decode()
    assert owner.post(url("webhook-delete", hook)).status_code == 302
    assert not Webhook.objects.exists()
    assert not Delivery.objects.exists()


def test_pages_take_the_same_number_of_queries_at_any_size(owner, hook, sent, django_assert_max_num_queries):
    for number in range(30):
        record_event(project=hook.project, kind="run.failed", data={"run": number})
    for name in ("webhook-list", "webhook"):
        args = ["alpha"] if name == "webhook-list" else ["alpha", hook.pk]
        with django_assert_max_num_queries(15):
            owner.get(reverse(f"events:{name}", args=args))
