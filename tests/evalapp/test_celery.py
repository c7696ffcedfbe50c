"""Messages stay in the queue until their work is done."""

from __future__ import annotations

import logging

import pytest

from evalapp import celery
from evalapp.common import tasks


@pytest.mark.promise("job")
def test_message_outlives_the_worker_that_took_it():
    """Messages are acknowledged only when the run has ended, returned when the worker is lost, and taken one at a time;
    a second worker gets one only after the time limit would have ended the first."""
    conf = celery.app.conf
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost, conf.worker_prefetch_multiplier) == (True, True, 1)
    visible = conf.broker_transport_options["visibility_timeout"]
    longest = [conf.task_time_limit, conf.task_soft_time_limit, tasks.run.time_limit, tasks.run.soft_time_limit]
    assert all(limit is None or limit < visible for limit in longest)
    assert visible >= 12 * 3600


@pytest.mark.promise("queue", "job")
def test_busy_worker_survives_losing_redis(redis_url: str) -> None:
    """Celery's handling of a lost connection with unacknowledged messages must fail like a lost connection, which it
    expects: acknowledging one and returning the other. Any other error ended the worker and its run."""
    with celery.app.connection(redis_url) as connection:
        queue = connection.SimpleQueue("kept")
        queue.put({"run": 1})
        queue.put({"run": 2})
        message, _other = queue.queue.get(no_ack=False), queue.queue.get(no_ack=False)
        message.channel._disconnect_pools()
        transport, message.channel.connection = message.channel.connection, None
        message.ack_log_error(logging.getLogger("test"), connection.connection_errors)
        message.channel.connection, transport.client = transport, None
        with pytest.raises(connection.connection_errors, match="is closed"):
            message.channel.close()
    with celery.app.connection(redis_url) as connection:
        # Returned normally while there is a connection.
        queue = connection.SimpleQueue("other")
        queue.put({"run": 3})
        assert queue.queue.get(no_ack=False) is not None
        queue.queue.channel.close()
    with celery.app.connection(redis_url) as connection:
        assert connection.SimpleQueue("other").get(timeout=2).payload == {"run": 3}
