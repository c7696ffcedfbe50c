"""Set up the webhooks of a project, test them, and repeat deliveries. The audit log has their names, never their
addresses or secrets."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.event_kinds import EVENT_KINDS, TEST_EVENT
from evalapp.common.naming import find_name_faults

from ..models import Delivery, Event, Webhook
from . import signing
from .addresses import check_address
from .recording import plan_delivery

MAX_WEBHOOKS = 20
#: What may be changed of a webhook.
FIELDS = ("name", "url", "events", "active")


def create_webhook(
    *, project: Project, actor: User | None, name: str, url: str, events: Sequence[str]
) -> tuple[Webhook, str]:
    """Return a new webhook and its secret, which is shown once."""
    _check(name=name, url=url, events=events)
    if Webhook.objects.filter(project=project).count() >= MAX_WEBHOOKS:
        raise Conflict(_("A project has at most %(most)d webhooks. Delete one first.") % {"most": MAX_WEBHOOKS})
    salt = signing.make_salt()
    secret = signing.derive_secret(salt)
    webhook = Webhook(
        project=project, name=name.strip(), url=url, events=_sort(events), salt=salt,
        digest=signing.hash_secret(secret), created_by=actor if actor is not None and actor.pk else None,
    )  # fmt: skip
    with transaction.atomic():
        _save(webhook)
        _record("created", webhook, actor, events=webhook.events)
    return webhook, secret


def update_webhook(*, webhook: Webhook, actor: User | None, **changes: Any) -> Webhook:
    """Change name, url, events or active."""
    _check(**changes)
    if "events" in changes:
        changes["events"] = _sort(changes["events"])
    if "name" in changes:
        changes["name"] = changes["name"].strip()
    changed = [field for field in FIELDS if field in changes and getattr(webhook, field) != changes[field]]
    for field in changed:
        setattr(webhook, field, changes[field])
    if changed:
        with transaction.atomic():
            _save(webhook, update_fields=changed)
            _record("changed", webhook, actor, fields=changed)
    return webhook


@transaction.atomic
def renew_secret(*, webhook: Webhook, actor: User | None) -> str:
    """Replace the secret of a webhook: later requests are signed with the new one. Returns it."""
    webhook.salt = signing.make_salt()
    secret = signing.derive_secret(webhook.salt)
    webhook.digest = signing.hash_secret(secret)
    webhook.save(update_fields=["salt", "digest"])
    _record("renewed", webhook, actor)
    return secret


@transaction.atomic
def delete_webhook(*, webhook: Webhook, actor: User | None) -> None:
    """Delete a webhook with its log of deliveries."""
    _record("deleted", webhook, actor)
    webhook.delete()


@transaction.atomic
def send_test(*, webhook: Webhook, actor: User | None) -> Delivery:
    """Send a test event to a webhook."""
    _check_active(webhook)
    event = Event.objects.create(
        project=webhook.project,
        kind=TEST_EVENT,
        path=reverse("events:webhook", args=[webhook.project.slug, webhook.pk]),
        data={"webhook": webhook.name},
    )
    _record("tested", webhook, actor)
    return plan_delivery(event, webhook)


@transaction.atomic
def redeliver(*, delivery: Delivery, actor: User | None) -> Delivery:
    """Send an event again, with the same id. Conflict while it waits for its next attempt."""
    webhook = delivery.webhook
    _check_active(webhook)
    waiting = Delivery.objects.filter(webhook=webhook, event=delivery.event, state=Delivery.State.WAITING)
    if waiting.exists():
        raise Conflict(_("This event is already waiting to be delivered."))
    _record("redelivered", webhook, actor, event=delivery.event.kind, delivery=delivery.pk)
    return plan_delivery(delivery.event, webhook)


def _check_active(webhook: Webhook) -> None:
    if not webhook.active:
        raise Conflict(_("The webhook is switched off. Switch it on first."))


def _check(**values: Any) -> None:
    faults = []
    if "name" in values:
        faults += find_name_faults(name=values["name"])
        if not 0 < len(values["name"].strip()) <= 100:
            faults.append(Fault(_("Enter a name of at most 100 characters."), field="name"))
    if "url" in values:
        try:
            check_address(values["url"])
        except BadInput as error:
            faults += error.faults
        if len(values["url"]) > 500:
            faults.append(Fault(_("Enter at most 500 characters."), field="url"))
    if "events" in values and (not values["events"] or set(values["events"]) - set(EVENT_KINDS)):
        text = _("Choose at least one of: %(events)s.") % {"events": ", ".join(EVENT_KINDS)}
        faults.append(Fault(text, field="events"))
    if faults:
        raise BadInput.from_faults(faults)


def _sort(events: Sequence[str]) -> list[str]:
    return [name for name in EVENT_KINDS if name in events]


def _save(webhook: Webhook, **options: Any) -> None:
    try:
        with transaction.atomic():
            webhook.save(**options)
    except IntegrityError as error:
        text = _("There is already a webhook “%(name)s” in this project. Choose another name.")
        raise Conflict.for_field("name", text % {"name": webhook.name}) from error


def _record(done: str, webhook: Webhook, actor: User | None, **detail: Any) -> None:
    audit.record(verb=f"webhook.{done}", project=webhook.project, actor=actor, object=webhook, **detail)
