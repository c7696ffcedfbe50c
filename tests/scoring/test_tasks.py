"""The worker of online scores preloads libraries; the others save the memory."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from scoring import tasks
from scoring.live import answering, libraries
from scoring.ml import ScoringError


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


def test_request_during_a_load_in_another_thread_waits_for_its_end(monkeypatch, tmp_path):
    """Like `transformers`, this module replaces itself by another at the end of its import."""
    (tmp_path / "replaced_later.py").write_text(
        "import sys, time, types\n"
        "time.sleep(0.5)\n"
        "whole = types.ModuleType(__name__)\n"
        "whole.answer = 42\n"
        "sys.modules[__name__] = whole\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(libraries, "HEAVY", ("replaced_later",))
    thread = threading.Thread(target=libraries.load_libraries)
    thread.start()
    while "replaced_later" not in sys.modules:
        time.sleep(0.01)
    libraries.load_libraries()
    from replaced_later import answer  # without the previous line: cannot import name

    thread.join()
    assert answer == 42
    del sys.modules["replaced_later"]


@pytest.mark.parametrize(("source", "loads"), [({"folder": "nowhere"}, 1), ({"name": "length"}, 0), ({"name": "?"}, 0)])
def test_libraries_are_waited_for_where_they_are_needed(monkeypatch, settings, tmp_path, source, loads):
    settings.ARTEFACTS_DIR = tmp_path
    seen = []
    monkeypatch.setattr(answering, "load_libraries", lambda: seen.append(1))
    with contextlib.suppress(ScoringError):
        answering.WarmModels(2).get(source, {}, lambda: None)
    assert len(seen) == loads
