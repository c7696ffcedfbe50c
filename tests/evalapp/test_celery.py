"""How messages are kept until their work is done."""

from __future__ import annotations

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
