from __future__ import annotations

import ipaddress
from collections.abc import Iterator

import pytest

from evalapp.events.models import Webhook
from evalapp.events.services.webhooks import create_webhook

from .receiver import Receiver, run_receiver


def allow(settings, *hosts: str, networks: tuple[str, ...] = ()) -> None:
    settings.WEBHOOK_HOSTS = frozenset(hosts)
    settings.WEBHOOK_NETWORKS = tuple(ipaddress.ip_network(network) for network in networks)


@pytest.fixture
def receiver(settings) -> Iterator[Receiver]:
    """A receiver that the administrator has allowed."""
    with run_receiver() as receiver:
        allow(settings, receiver.authority, networks=("127.0.0.1/32",))
        yield receiver


def catch_messages(monkeypatch) -> list[int]:
    """Ids of deliveries whose messages are sent to the queue from now on; those of mails are dropped."""
    ids: list[int] = []

    def send_task(name: str, args: list[int], **options: object) -> None:
        ids.extend(args if name == "evalapp.deliver_event" else [])

    monkeypatch.setattr("evalapp.celery.app.send_task", send_task)
    return ids


@pytest.fixture
def sent(monkeypatch) -> list[int]:
    """Ids of deliveries whose messages were sent to the queue."""
    return catch_messages(monkeypatch)


@pytest.fixture
def hook(cast, receiver) -> Webhook:
    """A webhook of the project; its secret is `hook.secret`."""
    events = ["campaign.complete", "run.failed"]
    hook, secret = create_webhook(project=cast.project, actor=cast.owner, name="lab", url=receiver.url, events=events)
    hook.secret = secret
    return hook
