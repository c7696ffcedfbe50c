"""Record events in the transaction in which they happen, so that an event of a transaction that is rolled back is never
reported, and one that is committed is reported at least once."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.urls import reverse

from evalapp.accounts.models import Project, User
from evalapp.common.jobs import find_job
from evalapp.common.models import Run

from ..models import Delivery, Event, Webhook
from .delivering import OUTBOX
from .mails import send_event_mails


def record_event(
    *,
    project: Project,
    kind: str,
    data: dict[str, Any],
    path: str = "",
    key: str = "",
    starter: User | None = None,
) -> Event | None:
    """Record an event, plan its deliveries and write its mails. `data` has no texts and no names of people; `path` is
    the page that shows the event. With `key` it is recorded once: later calls return None. `starter`: who started the
    run, and gets the mail about its end; mails about other events go to all who may read the project."""
    if key and is_recorded(project=project, kind=kind, key=key):
        return None
    try:
        with transaction.atomic():
            event = Event.objects.create(project=project, kind=kind, data=data, path=path, key=key)
            for webhook in Webhook.objects.filter(project=project, active=True).order_by("pk"):
                if kind in webhook.events:
                    plan_delivery(event, webhook)
            send_event_mails(event, starter)
    except IntegrityError:
        if key and is_recorded(project=project, kind=kind, key=key):
            return None  # another worker was faster
        raise
    return event


def is_recorded(*, project: Project, kind: str, key: str) -> bool:
    """Return whether an event with this key was recorded before."""
    return Event.objects.filter(project=project, kind=kind, key=key).exists()


def list_unrecorded(*, kind: str, keys: Mapping[str, Project]) -> list[str]:
    """Return the keys, each with its project, whose event was not recorded before; by one query for all."""
    known = Event.objects.filter(project__in=set(keys.values()), kind=kind, key__in=list(keys))
    return sorted(keys.keys() - set(known.values_list("key", flat=True)))


def plan_delivery(event: Event, webhook: Webhook) -> Delivery:
    """Create a delivery, which a worker sends after the transaction."""
    delivery = Delivery.objects.create(webhook=webhook, event=event)
    transaction.on_commit(lambda: OUTBOX.dispatch(delivery), robust=True)
    return delivery


def record_run_end(*, run: Run, state: str) -> None:
    """Record that a run has ended, if its kind reports that."""
    job = find_job(run.kind)
    if job is None or not job.event or state == Run.State.CANCELLED:
        return
    record_event(
        project=run.project,
        kind=f"{job.event}.{state}",
        path=reverse("run", args=[run.project.slug, run.pk]),
        data={"run": run.pk, "kind": run.kind, "title": run.title},
        starter=run.created_by,
    )
