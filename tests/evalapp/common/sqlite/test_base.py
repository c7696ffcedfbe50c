"""The queue of writers to a SQLite file: it is fair, also handles single statements, and times out with SQLite's own
error."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from django.db import OperationalError, connection, transaction

from evalapp.accounts.models import Project
from evalapp.common.sqlite.base import Line
from evalapp.settings import base

WRITERS, TURNS = 6, 12


@pytest.fixture
def on_file(tmp_path: Path, migrated_file: Path, django_db_blocker) -> Iterator[Path]:
    """Django on a file for this test, set up as in production."""
    from django.db import connections

    path = tmp_path / "evalapp.sqlite3"
    shutil.copy(migrated_file, path)
    usual, before = connections["default"], connections.settings["default"]
    with patch.dict("os.environ", DATABASE_URL=f"sqlite:///{path}"):
        config = base.database()
    connections.settings["default"] = connections.configure_settings({"default": config})["default"]
    del connections["default"]
    try:
        with django_db_blocker.unblock():
            Project.objects.create(slug="one", name="0")
            yield path
    finally:
        connections["default"].close()
        connections.settings["default"] = before
        connections["default"] = usual


def together(acts: list[Callable[[], None]]) -> list[Exception]:
    errors: list[Exception] = []
    barrier = threading.Barrier(len(acts))

    def work(act: Callable[[], None]) -> None:
        connection.ensure_connection()  # opened before the start: opening takes longer than a turn
        barrier.wait()
        try:
            act()
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_queue_is_fair(on_file: Path) -> None:
    """Six writers write without a pause; by the time the first has finished, each has had a turn. Without the queue,
    waiting writers poll with growing intervals."""
    done: Counter[int] = Counter()
    at_first_end: list[Counter[int]] = []

    def write(number: int) -> None:
        for _ in range(TURNS):
            with transaction.atomic():
                name = int(Project.objects.get().name)
                threading.Event().wait(0.004)  # other work inside a transaction
                Project.objects.update(name=str(name + 1))
            done[number] += 1
        at_first_end.append(done.copy())

    assert together([lambda number=number: write(number) for number in range(WRITERS)]) == []
    assert Project.objects.get().name == str(WRITERS * TURNS)
    assert len(at_first_end[0]) == WRITERS, at_first_end[0]


def test_single_statements_wait_for_their_turn(on_file: Path) -> None:
    inside, seen, order = threading.Event(), threading.Event(), []

    def slow() -> None:
        with transaction.atomic():
            Project.objects.update(name="1")
            inside.set()
            seen.wait(30)
            threading.Event().wait(0.2)
            order.append("transaction")

    def quick() -> None:
        inside.wait(30)
        assert Project.objects.get().name == "0"  # readers never wait
        seen.set()
        Project.objects.filter(name="1").update(name="2")
        order.append("statement")

    assert together([slow, quick]) == []
    assert (order, Project.objects.get().name) == (["transaction", "statement"], "2")


def break_off() -> None:
    with transaction.atomic():
        Project.objects.update(name="4")
        raise RuntimeError


def test_waiting_too_long_is_an_error(on_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.1)
    with transaction.atomic():
        found = together([lambda: Project.objects.update(name="2")])
    assert [type(error) for error in found] == [OperationalError]
    assert "locked" in str(found[0])
    Project.objects.update(name="3")
    with pytest.raises(RuntimeError):
        break_off()
    assert together([lambda: Project.objects.update(slug="two")]) == []
    assert (Project.objects.get().slug, Project.objects.get().name) == ("two", "3")


def wait_for(wanted: Callable[[], bool]) -> None:
    while not wanted():
        threading.Event().wait(0.002)


def test_queue_keeps_its_order_and_forgets_those_who_gave_up() -> None:
    line, order = Line(), []

    def come(number: int, seconds: float) -> None:
        if line.acquire(seconds):
            order.append(number)
            line.release()

    assert line.acquire(1)
    threads = [threading.Thread(target=come, args=(0, 10.0))]
    threads[0].start()
    wait_for(lambda: len(line.waiting) == 1)
    assert not line.acquire(0.01)  # a waiter that gave up
    for number in (1, 2):
        threads.append(threading.Thread(target=come, args=(number, 10.0)))
        threads[-1].start()
        wait_for(lambda: len(line.waiting) == len(threads))
    line.release()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2]
    assert line.acquire(0)


HOLD = """import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)"""


def test_dying_process_releases_its_turn(on_file: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, f"{on_file}-queue"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        waiting = threading.Timer(0.2, process.kill)
        waiting.start()
        Project.objects.update(name="5")  # as soon as the other process is gone
        assert process.wait(10) != 0
    assert sqlite3.connect(on_file).execute("SELECT name FROM accounts_project").fetchone() == ("5",)
