"""The supervisor with small programs; test_up.py of the command uses the real ones."""

import io
import os
import re
import signal
import sys
import threading
import time

import pytest

from evalapp.ops import supervisor
from evalapp.ops.errors import StartFailed
from evalapp.ops.log import MergedLog
from evalapp.ops.processes import Ending
from evalapp.ops.supervisor import Service, Supervisor
from evalapp.ops.watchdog import group_alive

pytestmark = pytest.mark.slow


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-u", "-c", code)


SLEEPER = python("import os, time; print('pid', os.getpid()); time.sleep(99)")


class Run:
    """A supervisor that runs in the main thread and is controlled by a function in another."""

    def __init__(self, tmp_path, services):
        self.out = io.StringIO()
        self.stages: list[int] = []
        log = MergedLog(self.out, [s.name for s in services], colour=False)
        self.supervisor = Supervisor(services, log, env=os.environ, cwd=tmp_path, announce=self.stages.append)

    def until(self, pattern: str, seconds: float = 60.0) -> re.Match:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.out.getvalue()):
                return found
            time.sleep(0.02)
        raise AssertionError(f"{pattern!r} never came:\n{self.out.getvalue()}")

    def __call__(self, steps, number=signal.SIGTERM) -> str:
        problems = []

        def steer():
            try:
                steps(self)
            except Exception as error:
                problems.append(error)
            finally:
                os.kill(os.getpid(), number)

        thread = threading.Thread(target=steer)
        thread.start()
        try:
            self.supervisor.run()
        finally:
            thread.join()
        if problems:
            raise problems[0]
        return self.out.getvalue()


def test_dead_service_is_restarted_and_everything_ends(tmp_path):
    run = Run(tmp_path, [Service("a", SLEEPER), Service("b", SLEEPER, stage=1)])
    pids = []

    def steps(run):
        pids.append(int(run.until(r"a\s+\| pid (\d+)")[1]))
        pids.append(int(run.until(r"b\s+\| pid (\d+)")[1]))
        os.kill(pids[0], signal.SIGKILL)
        run.until(r"a was ended by signal SIGKILL; restarting it in 0.5 s")
        pids.append(int(run.until(rf"a\s+\| pid (?!{pids[0]}\b)(\d+)")[1]))

    text = run(steps)
    assert len(set(pids)) == 3
    assert not any(group_alive(pid) for pid in pids)
    assert text.endswith("all processes have ended\n")
    assert run.stages == [0, 1]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_temporarily_unstartable_service_is_retried(tmp_path):
    program = tmp_path / "program"
    program.symlink_to(sys.executable)
    run = Run(tmp_path, [Service("a", (str(program), *SLEEPER[1:])), Service("b", SLEEPER)])

    def steps(run):
        first = int(run.until(r"a\s+\| pid (\d+)")[1])
        program.unlink()
        os.kill(first, signal.SIGKILL)
        run.until(r"a cannot be started \(No such file or directory\); restarting it in 1 s")
        program.symlink_to(sys.executable)
        run.until(rf"a\s+\| pid (?!{first}\b)(\d+)")

    assert run(steps).endswith("all processes have ended\n")


def test_under_nohup_a_closed_terminal_ends_nothing(tmp_path):
    def steps(run):
        run.until(r"a\s+\| pid (\d+)")
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(0.3)
        assert "ending" not in run.out.getvalue()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        Run(tmp_path, [Service("a", SLEEPER)])(steps)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_end_everything(tmp_path, number):
    pids = []
    text = Run(tmp_path, [Service("a", SLEEPER)])(
        lambda run: pids.append(int(run.until(r"a\s+\| pid (\d+)")[1])), number
    )
    assert text.endswith("all processes have ended\n")
    assert not group_alive(pids[0])


def test_second_signal_kills_slow_processes_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "ECHO", 0.1)
    stubborn = python("import signal, time; signal.signal(15, signal.SIG_IGN); print('up'); time.sleep(99)")
    services = [
        Service("first", SLEEPER),
        Service("stubborn", stubborn, stage=1, ending=Ending(((signal.SIGTERM, 60),))),
    ]
    began = []

    def steps(run):
        run.until("up")
        began.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)
        run.until("stopping stubborn")  # received: two pending signals would merge into one
        time.sleep(0.5)  # it is being waited for when the second signal arrives

    text = Run(tmp_path, services)(steps)
    assert time.monotonic() - began[0] < 30
    assert text.endswith("all processes have ended\n")


def test_signal_delivered_twice_counts_once(tmp_path, monkeypatch):
    """As from `timeout` or make, which forward a signal that the whole group has already received."""
    monkeypatch.setattr(supervisor, "ECHO", 60.0)  # the second signal may be late on a busy machine
    polite = python(
        "import signal, sys, time\n"
        "signal.signal(15, lambda *_: (time.sleep(0.5), print('said goodbye'), sys.exit()))\n"
        "print('up'); time.sleep(99)"
    )

    def steps(run):
        run.until("up")
        os.kill(os.getpid(), signal.SIGTERM)
        run.until("stopping polite")  # two pending signals merge into one in the kernel

    assert "said goodbye" in Run(tmp_path, [Service("polite", polite, stage=1)])(steps)


@pytest.mark.slow
def test_pauses_grow_for_a_service_that_keeps_dying(tmp_path):
    run = Run(tmp_path, [Service("bad", python("import sys; print('no'); sys.exit(3)"))])
    text = run(lambda run: run.until(r"in 2 s"))
    assert re.findall(r"restarting it in (\S+) s", text)[:3] == ["0.5", "1", "2"]
    assert "bad ended with status 3" in text


def test_step_runs_once_and_a_failed_one_says_how_to_repeat_it(tmp_path):
    services = [
        Service("good", python("print('filled')"), once=True),
        Service("bad", python("import sys; sys.exit(1)"), once=True, failed_hint="Try again with: X"),
    ]

    def steps(run):
        run.until("good is done")
        run.until(r"bad ended with status 1\. Try again with: X")
        time.sleep(0.7)

    text = Run(tmp_path, services)(steps)
    assert text.count("filled") == 1
    assert "starting" not in text


def test_stages_start_in_order_and_end_in_reverse(tmp_path):
    """The first stage still runs while the second ends: its final output proves the order."""
    marker = tmp_path / "ready"
    first = python(
        "import pathlib, signal, sys, time\n"
        "signal.signal(15, lambda *_: (print('first ends'), sys.exit()))\n"
        "time.sleep(0.3); pathlib.Path('ready').touch(); time.sleep(99)"
    )
    second = python(
        "import pathlib, signal, sys, time\n"
        "signal.signal(15, lambda *_: (time.sleep(0.3), print('second ends'), sys.exit()))\n"
        "print('first was ready:', pathlib.Path('ready').exists()); time.sleep(99)"
    )
    services = [Service("one", first, ready=marker.exists), Service("two", second, stage=1)]
    text = Run(tmp_path, services)(lambda run: run.until("first was ready: True"))
    assert text.index("second ends") < text.index("first ends")


def test_required_service_that_dies_stops_the_start(tmp_path):
    services = [
        Service("base", python("print('cannot'); raise SystemExit(1)"), needed=True, quiet=True, ready=lambda: False),
        Service("rest", SLEEPER, stage=1),
    ]
    run = Run(tmp_path, services)
    with pytest.raises(StartFailed, match=r"base did not start: it ended with status 1\ncannot"):
        run.supervisor.run()
    assert "pid" not in run.out.getvalue()


def test_required_service_that_stays_silent_stops_the_start(tmp_path):
    pids = {}
    service = Service(
        "base", SLEEPER, needed=True, ready=lambda: bool(pids.update(run.supervisor.pids())), patience=0.2
    )
    run = Run(tmp_path, [service])
    with pytest.raises(StartFailed, match="no answer after 0 s"):
        run.supervisor.run()
    assert not group_alive(pids["base"])


def test_quiet_lines_appear_only_after_an_unexpected_end(tmp_path):
    services = [Service("q", python("print('last words'); raise SystemExit(1)"), quiet=True)]
    assert "q | last words" in Run(tmp_path, services)(lambda run: run.until("ended with status 1"))
    services = [Service("q", SLEEPER, quiet=True)]
    assert "pid" not in Run(tmp_path, services)(lambda run: time.sleep(0.5))


def test_output_of_an_ending_process_is_still_read(tmp_path):
    """Otherwise a process that writes more than a pipe holds while ending would never end."""
    talker = python(
        "import signal, sys, time\n"
        "def end(*_):\n for i in range(3000): print('x' * 99)\n print('told all'); sys.exit()\n"
        "signal.signal(15, end); print('up'); time.sleep(99)"
    )
    assert "told all" in Run(tmp_path, [Service("talker", talker)])(lambda run: run.until("up"))
