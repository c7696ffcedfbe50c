"""The Celery application. The row of a run is its only state; messages in the queue contain only its id."""

import os
from typing import Any

from celery import Celery
from celery.schedules import crontab
from celery.signals import setup_logging
from kombu import Exchange, Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")

app = Celery("evalapp")

# Redis delivers a task that runs longer than this a second time; the second worker finds the run claimed and stops.
VISIBILITY_TIMEOUT = 60 * 60 * 12


def broker(url: str) -> str:
    return url.replace("unix://", "redis+socket://", 1)


def survive_redis_outages() -> None:
    """Patch two faults of Kombu (5.7). No run is lost by either, because the reconciler sends waiting runs again.

    It acknowledges and returns messages over the channel of a lost connection. That raises an AttributeError, which
    ends the worker with its run. As a ConnectionError, it makes Celery connect again.

    A message whose acknowledgement failed keeps its place for ever, so that a worker of one process takes no other one.
    Without the place, Redis delivers the message again after `VISIBILITY_TIMEOUT`."""
    from kombu.transport import redis, virtual
    from redis.exceptions import ConnectionError as LostConnection

    original = redis.Channel._connparams

    def connparams(channel: Any, asynchronous: bool = False) -> Any:
        if channel.connection is None or channel.connection.client is None:
            raise LostConnection("The connection of this channel is closed.")
        return original(channel, asynchronous=asynchronous)

    redis.Channel._connparams = connparams  # type: ignore[method-assign]

    def forget_after(send: Any) -> Any:
        def send_and_forget(qos: Any, delivery_tag: Any, *args: Any, **kwargs: Any) -> None:
            try:
                send(qos, delivery_tag, *args, **kwargs)
            except Exception:
                virtual.QoS.ack(qos, delivery_tag)
                raise

        return send_and_forget

    redis.QoS.ack = forget_after(redis.QoS.ack)  # type: ignore[method-assign]
    redis.QoS.reject = forget_after(redis.QoS.reject)  # type: ignore[method-assign]


def _make_schedule(settings: Any) -> dict[str, Any]:
    """Return the periodic tasks. Short ones are in the queue `live`; in others, lost runs would wait for the trainings
    before them."""
    schedule: dict[str, Any] = {
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
        "watch-events": {
            "task": "evalapp.watch_events",
            "schedule": 30.0,
            "options": {"queue": "live", "expires": 30},
        },
        "delete-old-mails": {
            "task": "evalapp.delete_old_mails",
            "schedule": crontab(hour=4, minute=10),
            "options": {"queue": "cpu", "expires": 12 * 3600},
        },
        "delete-old-events": {
            "task": "evalapp.delete_old_events",
            "schedule": crontab(hour=4, minute=20),
            "options": {"queue": "cpu", "expires": 12 * 3600},
        },
        # Every day, in case no scheduler runs on Monday morning.
        "report-week": {
            "task": "evalapp.report_week",
            "schedule": crontab(hour=6, minute=0),
            "options": {"queue": "cpu", "expires": 12 * 3600},
        },
    }
    if settings.BACKUP_FOLDER:
        schedule["back-up"] = {
            "task": "evalapp.back_up",
            "schedule": crontab(hour=settings.BACKUP_TIME[0], minute=settings.BACKUP_TIME[1]),
            "options": {"queue": "cpu", "expires": 12 * 3600},
        }
    if settings.ELASTICSEARCH_URL:
        schedule["catch-up"] = {
            "task": "retrieval.catch_up",
            "schedule": 30.0,
            "options": {"queue": "cpu", "expires": 30},
        }
    return schedule


def configure() -> None:
    from django.conf import settings

    from evalapp.common.jobs import QUEUES

    survive_redis_outages()
    app.conf.update(
        broker_url=broker(settings.REDIS_URL),
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_TIMEOUT,
            # A worker of several queues takes messages in the order of its --queues.
            "queue_order_strategy": "priority",
            # Look for tasks of dead workers every second instead of every 100 s.
            "unacked_restore_interval": 2,
            "unacked_restore_throttle": 1,
            "socket_connect_timeout": 2,
            # Pages wait no longer for the queue; the reconciler sends the run later.
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
        # A worker without --queues serves all.
        task_queues=[Queue(name, Exchange(name), routing_key=name) for name in QUEUES],
        task_publish_retry=False,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=False,
        timezone="UTC",
        imports=["evalapp.common.tasks", "evalapp.events.tasks", "retrieval.tasks", "scoring.tasks"],
        beat_schedule=_make_schedule(settings),
    )


@setup_logging.connect
def _keep_django_logging(**_: object) -> None:
    """Celery leaves logging to Django's settings."""


configure()
