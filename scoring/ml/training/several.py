"""Processes that share one training: started, monitored and ended together, whichever of them fails."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any

from scoring.ml.errors import ProcessDied, ScoringError
from scoring.ml.training.job import FitJob, TrainingProgress, ignore_progress
from scoring.ml.training.store import write_json
from scoring.ml.training.threads import share_threads

#: Marks that the folder has every phase of a shared training.
SHARED = "shared.json"
_MODULE = "scoring.ml.training.process"
_MEETING = "meeting-"
_LAST_LINES, _LAST_BYTES = 12, 4000
# The others fail as soon as one is gone; wait this long to find the first one.
_BLAME_SECONDS = 0.5
_END_SECONDS = 5.0


@dataclass
class _Process:
    number: int
    popen: subprocess.Popen[bytes]
    #: Its output, in an unnamed file that disappears with the last process that has it open.
    printed: IO[bytes]
    #: Its standard input and output.
    stdin: Connection
    stdout: Connection

    def send(self, content: bytes) -> None:
        """Write to the process; a dead process is detected when its output ends."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.send_bytes(content)

    def last_lines(self) -> str:
        """The last lines of its output."""
        descriptor = self.printed.fileno()
        start = max(0, os.fstat(descriptor).st_size - _LAST_BYTES)
        text = os.pread(descriptor, _LAST_BYTES, start).decode("utf-8", "replace")
        return "\n".join([line for line in text.splitlines() if line.strip()][-_LAST_LINES:])


def train_together(job: FitJob) -> None:
    """Train `job` with `job.processes` processes until all its phases are in its folder, where `train` then finds them
    as phases of a finished training.

    Each process trains the whole job with its rows of every batch; `job.report` receives the reports of the first one.
    An exception that it raises ends all processes, and so does the end of this process. Raises `ProcessDied` if a
    process fails, and `ScoringError` with the reason if one refuses the job.
    """
    done = job.folder / SHARED
    if done.is_file():
        return
    job.folder.mkdir(parents=True, exist_ok=True)
    for left in job.folder.glob(f"{_MEETING}*"):
        left.unlink(missing_ok=True)
    meeting = job.folder.resolve() / f"{_MEETING}{uuid.uuid4().hex}"
    handover = pickle.dumps(replace(job, report=ignore_progress))
    processes: list[_Process] = []
    try:
        for number in range(job.processes):
            processes.append(_start(job, number, meeting))
        for process in processes:
            process.send(handover)
        _follow(job, processes)
    finally:
        _end(processes)
        meeting.unlink(missing_ok=True)
    write_json(done, {"processes": job.processes})


def _start(job: FitJob, number: int, meeting: Path) -> _Process:
    printed = tempfile.TemporaryFile(dir=job.folder)  # noqa: SIM115 - read until the processes have ended
    popen = subprocess.Popen(
        [sys.executable, "-P", "-m", _MODULE, str(meeting)],
        env={**os.environ, **_environment(number, job.processes, share_threads(job.folder, job.processes))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=printed,
        # Ctrl-C reaches only this process, which ends the others.
        start_new_session=True,
    )
    assert popen.stdin is not None
    assert popen.stdout is not None
    with popen.stdin, popen.stdout:
        stdin = Connection(os.dup(popen.stdin.fileno()), readable=False)
        stdout = Connection(os.dup(popen.stdout.fileno()), writable=False)
    return _Process(number, popen, printed, stdin, stdout)


def _environment(number: int, processes: int, threads: int) -> dict[str, str]:
    """Environment variables for accelerate, the number of threads, and the module path."""
    return {
        "RANK": str(number),
        "LOCAL_RANK": str(number),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
        **_among_themselves(),
    }


def _among_themselves() -> dict[str, str]:
    """Use the loopback interface: all processes are on one machine, and no port should be open to others."""
    loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
    return {} if loopback is None else {"GLOO_SOCKET_IFNAME": loopback, "NCCL_SOCKET_IFNAME": loopback}


def _follow(job: FitJob, processes: Sequence[_Process]) -> None:
    """Receive messages until all processes have ended."""
    running: dict[Any, _Process] = {process.stdout: process for process in processes}
    while running:
        for stdout in wait(list(running)):
            process = running[stdout]
            try:
                message = json.loads(process.stdout.recv_bytes())
            except (EOFError, OSError):
                del running[stdout]
                if process.popen.wait():
                    raise _died(job, processes, process) from None
                continue
            if "refused" in message:
                raise ScoringError(message["refused"])
            if "failed" in message:
                raise _died(job, processes, process)
            job.report(TrainingProgress(**message["progress"]))
            process.send(b"")


def _died(job: FitJob, processes: Sequence[_Process], process: _Process) -> ProcessDied:
    """The error for a failed process. If one was killed, it is the cause; the others only lost contact with it."""
    until = time.monotonic() + _BLAME_SECONDS
    killed: _Process | None = None
    while killed is None and time.monotonic() < until:
        killed = next((each for each in processes if (each.popen.poll() or 0) < 0), None)
        time.sleep(0.02)
    process = killed or process
    how = "ended with an error"
    if killed is not None:
        number = -killed.popen.returncode
        how = f"was killed by {_signal_name(number)}"
        if number == signal.SIGKILL:
            how += " (perhaps there was too little memory)"
    return ProcessDied(job.name, process.number + 1, len(processes), how, process.last_lines())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(processes: Sequence[_Process]) -> None:
    """Kill the processes at once: checkpoints are complete or absent, and a process that waits for another does not
    react to signals."""
    for process in processes:
        process.popen.kill()
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.popen.wait(_END_SECONDS)
        for file in (process.stdin, process.stdout, process.printed):
            file.close()
