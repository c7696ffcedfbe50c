"""The monitor without a training library: its comparisons, waiting times, failures and resumption."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest

from evalapp.client import ApiError, Client, ClientError, ConnectionFailed, Record
from evalapp.client.stopping import Monitor, TookTooLong, Worker, load_comparer
from evalapp.stats.planning.stopping import Check

pytestmark = pytest.mark.slow


class ByNumber:
    """The text with the larger number wins."""

    def __init__(self) -> None:
        self.calls: list[tuple[list, list]] = []

    def compare(self, a, b):
        self.calls.append((list(a), list(b)))
        return np.sign([float(x.text) - float(y.text) for x, y in zip(a, b, strict=True)])


class Hanging:
    def __init__(self) -> None:
        self.release, self.begun = threading.Event(), 0

    def compare(self, a, b):
        self.begun += 1
        self.release.wait(30)
        return [1] * len(a)


class Failing:
    def compare(self, a, b):
        raise ConnectionFailed("refused", url="http://host/")


def texts(*numbers: float):
    return lambda left: [str(number) for number in numbers]


def test_newest_is_compared_with_the_two_before():
    comparer = ByNumber()
    monitor = Monitor(comparer, ["one", ["two", "three"]])
    assert monitor.check(10, texts(1, 5)).n == 0
    second = monitor.check(20, texts(2, 5))
    assert (second.wins, second.ties, second.losses) == (1, 1, 0)
    third = monitor.check(30, texts(0, 6))
    assert (third.wins, third.ties, third.losses) == (2, 0, 2)
    fourth = monitor.check(40, texts(0, 0))  # against 30 and 20; 10 is forgotten
    assert (fourth.wins, fourth.ties, fourth.losses) == (0, 1, 3)
    new, old = comparer.calls[0]
    assert [record.context for record in new] == [("one",), ("two", "three")]
    assert [record.text for record in old] == ["1", "5"]


def test_stops_by_the_rule():
    monitor = Monitor(ByNumber(), ["x"], patience=3)
    stopped = []
    for step, number in enumerate([1, 2, 3, 2, 1.5, 1]):
        monitor.check(step, texts(number))
        stopped.append(monitor.rule.should_stop)
    assert stopped == [False] * 5 + [True]
    assert monitor.rule.best == 2


def test_hanging_comparer_costs_its_time_limit_once(caplog):
    comparer = Hanging()
    monitor = Monitor(comparer, ["x"])
    monitor.check(1, texts(1))
    monitor.timeout = 1.0
    start = time.monotonic()
    with caplog.at_level(logging.DEBUG, logger="evalapp.client"):
        for step in range(2, 6):
            assert monitor.check(step, texts(step)).n == 0
    assert 0.9 < time.monotonic() - start < 20  # out of thirty seconds
    assert (monitor.missed, comparer.begun) == (4, 1)
    # One log line. Later checks did not wait: the first one was still running.
    assert [record.levelname for record in caplog.records] == ["WARNING", *["DEBUG"] * 3]
    assert "step 2 is not compared" in caplog.text
    assert ["not ended yet" in record.message for record in caplog.records] == [False, *[True] * 3]
    comparer.release.set()
    while monitor.worker.is_busy:
        time.sleep(0.01)
    monitor.timeout = 60.0
    assert monitor.check(6, texts(6)).wins == 2  # over 1 and 2: meanwhile nothing was generated
    assert monitor.rule.best == 6


def test_failing_server_is_logged_once_and_training_continues(caplog):
    monitor = Monitor(Failing(), ["x"], patience=1)
    with caplog.at_level(logging.WARNING):
        for step in range(4):
            monitor.check(step, texts(step))
    (said,) = [record.message for record in caplog.records]
    assert said.startswith("step 1 is not compared with earlier checkpoints (ConnectionFailed: http://host/: refused).")
    assert not monitor.rule.should_stop
    assert monitor.missed == 3


@pytest.mark.parametrize("found", [["1"], ["1", 2], ["1", "2", "3"]])
def test_other_generation_is_not_a_check(found, caplog):
    monitor = Monitor(ByNumber(), ["x", "y"])
    assert monitor.check(1, lambda left: found).n == 0
    assert "it must return texts" in caplog.text


def test_checks_that_use_up_their_time_become_rarer(caplog):
    begun = []

    def slow(left: float) -> list[str]:
        begun.append(step)
        time.sleep(0.02)
        return ["1"]

    monitor = Monitor(ByNumber(), ["x"], timeout=0.01)
    with caplog.at_level(logging.WARNING):
        for step in range(1, 13):
            monitor.check(step, slow, in_thread=False)
    assert begun == [1, 3, 6, 11]  # 1, 2 and 4 were skipped in between
    assert ["next check is skipped" in record.message for record in caplog.records] == [True, *[False] * 3]
    assert "the next 8 checks are skipped" in caplog.text
    monitor.timeout = 60.0
    for step in range(13, 21):
        monitor.check(step, slow, in_thread=False)
    assert begun[4:] == [20]  # checks that ended in time
    monitor.timeout = 0.01
    for step in range(21, 24):
        monitor.check(step, slow, in_thread=False)
    assert begun[5:] == [21, 23]


def test_hanging_generation_is_abandoned():
    monitor, release = Monitor(ByNumber(), ["x"], timeout=0.1), threading.Event()
    start = time.monotonic()
    monitor.check(1, lambda left: [str(release.wait(30))])
    assert time.monotonic() - start < 20  # out of thirty seconds
    assert monitor.missed == 1
    release.set()


def test_verdicts_of_a_wrong_shape(caplog):
    class Wrong:
        def compare(self, a, b):
            return [1, 1, 1]

    monitor = Monitor(Wrong(), ["x", "y"])
    monitor.check(1, texts(1, 1))
    assert monitor.check(2, texts(1, 1)).n == 0
    assert "verdicts of shape (3,) for 2 pairs" in caplog.text


def asked_first(answer, timeout=60.0) -> Monitor:
    """A monitor whose server gives this answer to every request."""
    transport = httpx.MockTransport(answer)
    client = Client("http://host", "t", transport=transport, retries=0)
    monitor = Monitor(client.evaluator("comparative-1"), [["a", "b"]], timeout=timeout)
    monitor.try_server()
    return monitor


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_refusal_of_the_server_is_raised_at_once(status):
    with pytest.raises(ApiError, match=f"{status} No"):
        asked_first(lambda request: httpx.Response(status, json={"title": "No"}))


def test_temporary_failure_before_the_first_check_is_survived(caplog):
    def broken(request):
        raise httpx.ConnectError("refused")

    asked_first(broken)
    asked_first(lambda request: httpx.Response(503, json={"title": "Down"}))
    release = threading.Event()
    monitor = asked_first(lambda request: release.wait(30) and broken(request), timeout=0.05)
    release.set()
    assert [record.levelname for record in caplog.records if record.name.startswith("evalapp.")] == ["WARNING"] * 3
    assert ["ConnectionFailed" in caplog.text, "503 Down" in caplog.text, "TookTooLong" in caplog.text] == [True] * 3
    assert monitor.missed == 0


def test_server_is_asked_for_one_verdict_with_an_input_context():
    seen = []

    def answer(request):
        seen.append(json.loads(request.content))
        return httpx.Response(200, json={"verdicts": [1], "probabilities": [], "signature": "s"})

    asked_first(answer)
    assert seen == [{"pairs": [{"context": ["a", "b"], "a": "Yes.", "b": "No."}]}]


def test_resuming_equals_continuing(tmp_path):
    numbers = [1, 5, 4, 3, 2, 1.5, 1]
    journal = tmp_path / "out" / "checks.jsonl"
    whole = Monitor(ByNumber(), ["x"], patience=4)
    for step, number in enumerate(numbers, 1):
        if not whole.rule.should_stop:
            whole.check(step, texts(number))
    first = Monitor(ByNumber(), ["x"], patience=4, journal=journal)
    first.resume(0)
    for step in range(1, 5):
        first.check(step, texts(numbers[step - 1]))
    second = Monitor(ByNumber(), ["x"], patience=4, journal=journal)
    second.resume(3)  # the checkpoint is older than the last check
    assert len(journal.read_text().splitlines()) == 3
    for step in range(4, len(numbers) + 1):
        if not second.rule.should_stop:
            second.check(step, texts(numbers[step - 1]))
    assert second.rule.checks == whole.rule.checks
    assert (second.rule.should_stop, second.rule.best) == (True, 3)


def test_truncated_journal(tmp_path):
    journal = tmp_path / "checks.jsonl"
    monitor = Monitor(ByNumber(), ["x"], journal=journal)
    monitor.check(1, lambda left: ["1\u2028"])  # a different line separator, which JSON leaves unescaped
    whole = journal.read_text(encoding="utf-8")
    row = json.loads(whole)
    journal.write_text(whole + json.dumps({**row, "step": 2})[:30], encoding="utf-8")
    monitor.resume(5)
    assert [check.checkpoint for check in monitor.rule.checks] == [1]
    monitor.resume(0)
    assert journal.read_text() == ""
    journal.write_bytes(whole.encode() + whole.encode()[:-6])  # within the last character
    monitor.resume(5)
    assert [check.checkpoint for check in monitor.rule.checks] == [1]


@pytest.mark.parametrize("other", [["Is it raining?"], ["What is your name?", "Why?"], [["Hi.", "What is your name?"]]])
def test_texts_for_other_inputs_are_not_compared(tmp_path, other, caplog):
    journal = tmp_path / "checks.jsonl"
    Monitor(ByNumber(), ["What is your name?"], journal=journal).check(1, texts(1))
    before = journal.read_bytes()
    for number in (1, 2):
        monitor = Monitor(ByNumber(), other, journal=journal)
        journal.write_bytes(before)
        monitor.resume(1)
        assert (monitor.rule.checks, journal.read_bytes()) == ([], b"")
        assert monitor.check(2, texts(*[2] * len(other))).n == 0
        assert (tmp_path / f"checks.jsonl.{number}").read_bytes() == before  # no state is lost
        assert caplog.records[-1].levelname == "WARNING"
        assert f"It is renamed to checks.jsonl.{number}; the checks start again" in caplog.text
    again = Monitor(ByNumber(), other, journal=journal)
    again.resume(2)
    assert [check.checkpoint for check in again.rule.checks] == [2]


def test_missing_text_or_disk_does_not_stop_training(tmp_path, caplog):
    journal = tmp_path / "checks.jsonl"
    monitor = Monitor(Failing(), ["x"], journal=journal)
    monitor.check(1, lambda left: ["half of a pair: \ud83d"])
    monitor.resume(1)
    assert [check.checkpoint for check in monitor.rule.checks] == [1]
    assert json.loads(journal.read_text())["texts"] == ["half of a pair: \ud83d"]
    monitor.journal = tmp_path  # cannot be written
    assert monitor.check(2, texts(1)).checkpoint == 2
    assert "will not know this check" in caplog.text


def test_invalid_comparer(tmp_path):
    with pytest.raises(ClientError, match=r"has no compare"):
        load_comparer(object())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no inputs"):
        Monitor(ByNumber(), [])
    with pytest.raises(ValueError, match="not one text"):
        Monitor(ByNumber(), "a text")
    with pytest.raises(ValueError, match="greater than 0"):
        Monitor(ByNumber(), ["x"], timeout=0)


@pytest.mark.parametrize("as_text", [False, True])
def test_folder_with_a_comparative_evaluator_compares(tmp_path, as_text):
    """A real evaluator with a tiny untrained encoder: the verdicts equal its own."""
    from scoring.ml import load
    from scoring.ml.encoders.source import find_encoder
    from tests.scoring.ml.evaluators.comparative.data import untrained
    from tests.scoring.ml.tiny import tiny_encoder

    untrained(find_encoder(tiny_encoder("bert", tmp_path / "bert")), 1).save_pretrained(tmp_path / "judge")
    given = str(tmp_path / "judge") if as_text else tmp_path / "judge"
    monitor = Monitor(given, ["you like", ["tea", "cat sat"]])
    first, second = ["cat sat on mat", "no"], ["the dog ran", "yes yes"]
    assert monitor.check(1, lambda left: first).n == 0
    check = monitor.check(2, lambda left: second)
    contexts = [("you like",), ("tea", "cat sat")]
    new, old = (list(map(Record, side, [()] * 2, contexts)) for side in (second, first))
    assert check == Check.from_verdicts(2, load(tmp_path / "judge").compare(new, old))
    assert (check.n, monitor.missed) == (2, 0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("chrf", "pass the comparative evaluator"),  # known to the library, but not comparative
        ("no-such-folder", "no folder of that name holds a saved one"),
        ("comparative", "comparative has to be trained first"),
    ],
)
def test_unloadable_or_non_comparative_evaluator(name, words):
    with pytest.raises(ClientError, match=words):
        load_comparer(name)


def test_damaged_folder_is_reported_with_its_problem(tmp_path):
    (tmp_path / "evaluator.json").write_text("{")
    with pytest.raises(ClientError, match=r"evaluator\.json"):
        load_comparer(tmp_path)


def test_worker_thread_reraises_exceptions():
    def work() -> int:
        raise KeyError("x")

    worker, release = Worker(), threading.Event()
    with pytest.raises(KeyError):
        worker.call(work, 60.0)
    assert worker.call(lambda: 3, 60.0) == 3
    with pytest.raises(TookTooLong):
        worker.call(lambda: release.wait(60), 0.01)
    with pytest.raises(TookTooLong, match="not ended yet"):
        worker.call(lambda: 3, 60.0)
    release.set()


def test_client_alone_loads_nothing_heavy():
    code = (
        "import sys, evalapp.client\n"
        "heavy = {'django', 'numpy', 'pandas', 'torch', 'transformers', 'scoring', 'annotation'} & set(sys.modules)\n"
        "sys.exit(f'{sorted(heavy)} were imported' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("package", "missing", "code"),
    [
        ("pandas", "pandas", "from evalapp.client.rows import to_frame; to_frame([])"),
        ("transformers[torch]", "torch", "import evalapp.client.callback"),
    ],
)
def test_missing_package_is_named(package, missing, code):
    blocked = f"import sys; sys.modules[{missing!r}] = None\n{code}"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, timeout=300)
    assert f"needs {package}" in done.stderr
    assert f"pip install {package}" in done.stderr
