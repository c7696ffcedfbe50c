"""Several processes that share one training: started, listened to, and ended together, whatever happens to one of them
or to this one."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from scoring.ml.errors import ProcessDied, ScoringError
from scoring.ml.training.job import FitJob, TrainingProgress, silent
from scoring.ml.training.process import LENGTH_BYTES
from scoring.ml.training.store import write_json
from scoring.ml.training.threads import share_threads

#: That every phase of a shared training stands in the folder.
SHARED = "shared.json"
_MODULE = "scoring.ml.training.process"
_MEETING = "meeting-"
_LAST_LINES, _LAST_BYTES = 12, 4000
# The others break off as soon as one is gone: so long it is awaited who was first.
_BLAME_SECONDS = 0.5
_END_SECONDS = 5.0


@dataclass
class _Process:
    number: int
    popen: subprocess.Popen[bytes]
    #: What it prints; a file without a name, which goes with the last who has it open.
    printed: IO[bytes]
    #: What it said and did not end with a new line yet.
    open_line: bytes = b""

    def send(self, content: bytes) -> None:
        """One that is too dead to read is found out by its silence."""
        assert self.popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.write(content)
            self.popen.stdin.flush()

    def heard(self) -> list[dict[str, Any]] | None:
        """What it says; None once it has said all."""
        assert self.popen.stdout is not None
        found = os.read(self.popen.stdout.fileno(), 1 << 16)
        if not found:
            return None
        *lines, self.open_line = (self.open_line + found).split(b"\n")
        return [json.loads(line) for line in lines]

    def last_lines(self) -> str:
        """The end of what it printed."""
        descriptor = self.printed.fileno()
        start = max(0, os.fstat(descriptor).st_size - _LAST_BYTES)
        text = os.pread(descriptor, _LAST_BYTES, start).decode("utf-8", "replace")
        return "\n".join([line for line in text.splitlines() if line.strip()][-_LAST_LINES:])


def train_together(job: FitJob) -> None:
    """Train `job` by `job.processes` processes, until all its phases stand in its folder: there `train` finds them as
    those of a training that had ended.

    Each process trains the whole job, with its rows of every batch; `job.report` hears the first one. An exception that
    it raises ends them all, and so does the end of this process. Raises `ProcessDied` where one of them does not come
    to its end, and `ScoringError` with what one of them was refused for.
    """
    done = job.folder / SHARED
    if done.is_file():
        return
    job.folder.mkdir(parents=True, exist_ok=True)
    for left in job.folder.glob(f"{_MEETING}*"):
        left.unlink(missing_ok=True)
    meeting = job.folder.resolve() / f"{_MEETING}{uuid.uuid4().hex}"
    handover = pickle.dumps(replace(job, report=silent))
    processes: list[_Process] = []
    try:
        for number in range(job.processes):
            processes.append(_start(job, number, meeting))
        for process in processes:
            process.send(len(handover).to_bytes(LENGTH_BYTES, "big") + handover)
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
        # Ctrl-C is for this process, which ends them.
        start_new_session=True,
    )
    return _Process(number, popen, printed)


def _environment(number: int, processes: int, threads: int) -> dict[str, str]:
    """What accelerate reads, the share of the processor, and where modules are found."""
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
    """They are on one machine: no port of theirs is open to another."""
    loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
    return {} if loopback is None else {"GLOO_SOCKET_IFNAME": loopback, "NCCL_SOCKET_IFNAME": loopback}


def _follow(job: FitJob, processes: Sequence[_Process]) -> None:
    """Until all have come to their end."""
    with selectors.DefaultSelector() as selector:
        for process in processes:
            assert process.popen.stdout is not None
            selector.register(process.popen.stdout, selectors.EVENT_READ, process)
        while selector.get_map():
            for key, _ in selector.select():
                process = key.data
                messages = process.heard()
                if messages is None:
                    selector.unregister(key.fileobj)
                    if process.popen.wait():
                        raise _died(job, processes, process)
                for message in messages or ():
                    _take(job, processes, process, message)


def _take(job: FitJob, processes: Sequence[_Process], process: _Process, message: Mapping[str, Any]) -> None:
    if "refused" in message:
        raise ScoringError(message["refused"])
    if "failed" in message:
        raise _died(job, processes, process)
    job.report(TrainingProgress(**message["progress"]))
    process.send(b"\n")


def _died(job: FitJob, processes: Sequence[_Process], process: _Process) -> ProcessDied:
    """Whoever was killed is the cause; that others then miss it is not."""
    until = time.monotonic() + _BLAME_SECONDS
    killed: _Process | None = None
    while killed is None and time.monotonic() < until:
        killed = next((each for each in processes if (each.popen.poll() or 0) < 0), None)
        time.sleep(0.02)
    process = killed or process
    how = "ended with an error"
    if killed is not None:
        number = -killed.popen.returncode
        how = f"was killed by {_name_of(number)}"
        if number == signal.SIGKILL:
            how += " (perhaps there was too little memory)"
    return ProcessDied(job.name, process.number + 1, len(processes), how, process.last_lines())


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(processes: Sequence[_Process]) -> None:
    """At once: checkpoints are whole or absent, and a process that waits for another hears nothing."""
    for process in processes:
        process.popen.kill()
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.popen.wait(_END_SECONDS)
        for file in (process.popen.stdin, process.popen.stdout, process.printed):
            if file is not None:
                with contextlib.suppress(BrokenPipeError):
                    file.close()
