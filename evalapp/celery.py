"""The Celery application. The database row of a run is the truth; the queue only says "look at row N"."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")

app = Celery("evalapp")

# A task that runs longer than this is given to a second worker by Redis; long jobs therefore claim their row,
# so a second delivery finds it running and leaves at once.
VISIBILITY_TIMEOUT = 60 * 60 * 12


def broker(url: str) -> str:
    return url.replace("unix://", "redis+socket://", 1)


def keep_worker_while_redis_is_away() -> None:
    """Kombu (5.7) goes on using the channel of a lost connection: it acknowledges what was taken over it, and gives
    back what was not acknowledged. Where the connection is no more that is an AttributeError, which ends the worker
    with the run it is at; said as what it is, a lost connection, Celery connects again. Nothing is lost by what could
    not be acknowledged or given back: the row of a run is the truth, and the reconciler sends what waits."""
    from kombu.transport import redis
    from redis.exceptions import ConnectionError as Lost

    usual = redis.Channel._connparams

    def connparams(channel: Any, asynchronous: bool = False) -> Any:
        if channel.connection is None or channel.connection.client is None:
            raise Lost("The connection of this channel is no more.")
        return usual(channel, asynchronous=asynchronous)

    redis.Channel._connparams = connparams  # type: ignore[method-assign]


def configure() -> None:
    from django.conf import settings

    keep_worker_while_redis_is_away()
    app.conf.update(
        broker_url=broker(settings.REDIS_URL),
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_TIMEOUT,
            # Redis looks for tasks of dead workers every `interval` polls; the defaults look every 100 s.
            "unacked_restore_interval": 2,
            "unacked_restore_throttle": 1,
            "socket_connect_timeout": 2,
            # A page that asks for a run waits for this long, not longer: the row is kept, the reconciler sends it.
            "socket_timeout": 2,
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0.1,
            "interval_max": 0.1,
        },
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_default_queue="cpu",
        task_publish_retry=False,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=False,
        timezone="UTC",
        imports=["evalapp.common.tasks", "retrieval.tasks", "scoring.tasks"],
        # By the worker of `live`, where nothing takes longer than somebody waits: in another queue a run that lost its
        # worker would wait until the trainings before it have ended.
        beat_schedule={
            "reconcile": {
                "task": "evalapp.reconcile",
                "schedule": 10.0,
                "options": {"queue": "live", "expires": 10},
            },
            "seal-audit": {
                "task": "evalapp.seal_audit",
                "schedule": 60.0,
                "options": {"queue": "live", "expires": 60},
            },
        },
    )
    if settings.ELASTICSEARCH_URL:
        app.conf.beat_schedule["catch-up"] = {
            "task": "retrieval.catch_up",
            "schedule": 30.0,
            "options": {"queue": "cpu", "expires": 30},
        }


@setup_logging.connect
def _keep_django_logging(**_: object) -> None:
    """Celery leaves logging to Django's settings."""


configure()
