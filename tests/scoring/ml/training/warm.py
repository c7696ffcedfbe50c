"""Processes of a shared training, forked from one that has loaded the libraries, since loading takes most of such a
test's time. Fresh Python processes are used where workers are tested, and where nothing is trained."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.reduction import DupFd
from types import SimpleNamespace
from typing import Any

import pytest

from scoring.ml.training import several

_LOADED = [
    "scoring.ml.training.process",
    "tests.scoring.ml.training.many",
    *(
        f"scoring.ml.evaluators.{name}.evaluator"
        for name in ("adversarial", "comparative", "perception", "shared_bert")
    ),
]


class Descriptor:
    """A file descriptor in transit to another process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _received, (DupFd(self.number),)


def _received(duplicate: Any) -> Descriptor:
    return Descriptor(duplicate.detach())


class Popen:
    """The part of `subprocess.Popen` that is needed to run `python -m MODULE`."""

    def __init__(self, command: list[str], *, env: dict[str, str], stderr: Any, **_: Any) -> None:
        theirs, mine = os.pipe()
        heard, said = os.pipe()
        files = [Descriptor(number) for number in (theirs, said, stderr.fileno())]
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_LOADED)
        self.process = context.Process(target=_run, args=(command[command.index("-m") + 2 :], env, files))
        self.process.start()
        os.close(theirs)
        os.close(said)
        self.stdin, self.stdout = os.fdopen(mine, "wb"), os.fdopen(heard, "rb")
        self.pid = self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        self.process.join(timeout)
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()


def _run(arguments: list[str], env: dict[str, str], files: list[Descriptor]) -> None:
    from scoring.ml.training import process

    for place, file in enumerate(files):
        os.dup2(file.number, place)
        os.close(file.number)
    os.environ.update(env)
    sys.argv = ["process", *arguments]
    sys.exit(process.main())


@contextmanager
def warm() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        known = SimpleNamespace(Popen=Popen, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)
        patch.setattr(several, "subprocess", known)
        yield
