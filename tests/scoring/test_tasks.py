"""The worker of online scores gets ready; the others do not spend memory on it."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from scoring import tasks


@pytest.mark.parametrize(
    ("queues", "warms"), [(["live"], True), (["cpu", "gpu"], False), (["cpu", "gpu", "live"], False)]
)
def test_only_the_live_worker_warms_up(monkeypatch, queues, warms):
    amqp = SimpleNamespace(queues=SimpleNamespace(consume_from=dict.fromkeys(queues)))
    monkeypatch.setattr(tasks, "app", SimpleNamespace(amqp=amqp))
    timer = tasks.warm_up()
    assert (timer is not None) == warms
    if timer is not None:
        timer.cancel()


def test_warming_up_loads_what_an_answer_needs():
    tasks.load_libraries()
    assert {"torch", "transformers", "scoring.ml"} <= set(sys.modules)
