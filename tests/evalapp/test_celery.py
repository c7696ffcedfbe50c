"""How messages are kept until their work is done."""

from __future__ import annotations

import logging

import pytest

from evalapp import celery
from evalapp.common import tasks


@pytest.mark.promise("job")
def test_a_message_outlives_the_worker_that_took_it():
    """Taken back only when the run has ended, given on when its worker is lost, one at a time; and given to a second
    worker later than the clock would end the first, where it does."""
    conf = celery.app.conf
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost, conf.worker_prefetch_multiplier) == (True, True, 1)
    visible = conf.broker_transport_options["visibility_timeout"]
    longest = [conf.task_time_limit, conf.task_soft_time_limit, tasks.run.time_limit, tasks.run.soft_time_limit]
    assert all(limit is None or limit < visible for limit in longest)
    assert visible >= 12 * 3600


@pytest.mark.promise("queue", "job")
def test_a_worker_outlives_redis_while_it_is_at_a_run(redis_url: str) -> None:
    """What Celery does with the channel of a lost connection whose message was not acknowledged fails as a lost
    connection does, which it expects. Any other error ended the worker, and so the run it was at."""
    with celery.app.connection(redis_url) as connection:
        queue = connection.SimpleQueue("kept")
        queue.put({"run": 1})
        message = queue.queue.get(no_ack=False)
        message.channel._disconnect_pools()
        transport, message.channel.connection = message.channel.connection, None
        message.ack_log_error(logging.getLogger("test"), connection.connection_errors)
        message.channel.connection, transport.client = transport, None
        with pytest.raises(connection.connection_errors, match="no more"):
            message.channel.close()
    with celery.app.connection(redis_url) as connection:
        # Given back in the ordinary way where there is a connection.
        queue = connection.SimpleQueue("other")
        queue.put({"run": 2})
        assert queue.queue.get(no_ack=False) is not None
        queue.queue.channel.close()
    with celery.app.connection(redis_url) as connection:
        assert connection.SimpleQueue("other").get(timeout=2).payload == {"run": 2}
