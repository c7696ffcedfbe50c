"""The installation used by the other tests starts, loses parts, and starts again."""

from __future__ import annotations

import os
import signal
import urllib.request

import pytest

from evalapp.common.queue import enqueue_run
from evalapp.ops.watchdog import group_alive
from tests.cast import make_cast
from tests.evalapp.common import run_jobs  # noqa: F401 - registers the kinds of job
from tests.evalapp.common.conftest import wait_until

pytestmark = [pytest.mark.server, pytest.mark.slow]
INCLUDE = ["--include", "tests.evalapp.common.run_jobs"]


def test_stack_starts_answers_dies_and_restarts(stack):
    stack.start("redis", "web")
    stack.start("work", more=INCLUDE)
    project = make_cast().project
    first = enqueue_run(kind="test-count", project=project, params={"steps": 1}, title="one")
    wait_until(lambda: type(first).objects.get(pk=first.pk).state == "succeeded")
    with urllib.request.urlopen(f"{stack.url}/health/live", timeout=30) as answer:
        assert answer.status == 200
    before = stack.pid("redis")
    stack.kill("redis", "work")
    assert not group_alive(before)
    second = enqueue_run(kind="test-count", project=project, params={"steps": 2}, title="two")
    stack.start("redis")
    assert stack.redis().ping()
    assert stack.end("web", signal.SIGTERM) == 0
    assert not stack.alive("web")
    assert second.is_active
    os.kill(stack.pid("redis"), 0)
