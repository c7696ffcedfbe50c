"""Kinds of job that exist only in tests; the worker of a test imports this module with `--include`."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from evalapp.common import jobs
from evalapp.common.errors import BadInput, Fault
from evalapp.common.jobs import Job, register
from evalapp.common.params import param

REFUSED = "Two rows have faults."
HERE = "tests.evalapp.common.run_jobs"


@dataclass(frozen=True)
class CountParams:
    """The parameters of an API request for a counting run."""

    steps: int = param(help="How far it counts.")
    pause: float = param(0.05, help="Seconds between two steps.")


def count(context: Any, *, steps: int, pause: float = 0.05) -> dict[str, Any]:
    context.log(f"counting to {steps}")
    for step in range(steps):
        time.sleep(pause)
        context.progress(step + 1, steps, unit="steps", phase="counting")
    return {"counted": steps, "attempt": context.run.attempt}


def sleep(context: Any, *, seconds: float) -> dict[str, Any]:
    """Never checks for cancellation."""
    context.log("asleep")
    time.sleep(seconds)
    return {"slept": seconds}


def refuse(context: Any) -> dict[str, Any]:
    raise BadInput(REFUSED, faults=[Fault("No text.", field="text", file="o.csv", line=3)])


def break_down(context: Any) -> dict[str, Any]:
    return {"x": 1 // int(context.run.params.get("zero", 0))}


def find_nothing(context: Any) -> dict[str, Any]:
    """A result that no database can store."""
    context.log("half a character: \ud800, and none: \0")
    return {"mean": float("nan"), "by system": [{"name": "a\0b", "value": float("inf")}], "n": 0}


def run_out_of_memory(context: Any) -> dict[str, Any]:
    raise MemoryError


for kind, function in {
    "test-count": count,
    "test-sleep": sleep,
    "test-refuse": refuse,
    "test-break": break_down,
    "test-memory": run_out_of_memory,
    "test-nothing": find_nothing,
}.items():
    register(Job(kind, "cpu", f"{HERE}:{function.__name__}", "Only in tests."))


def ask(*, project: Any, user: Any, options: CountParams) -> Any:
    from evalapp.common.queue import enqueue_run

    params = asdict(options)
    return enqueue_run(kind="test-asked", project=project, user=user, params=params, title="Asked", send=False)


def put_job(monkeypatch: pytest.MonkeyPatch, job: Job) -> None:
    """Registers or replaces a kind of job until the end of the test."""
    monkeypatch.setitem(jobs._JOBS, job.kind, job)


def put_asked_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers `test-asked`, which counts and can be requested through the API."""
    asked = Job("test-asked", "cpu", f"{HERE}:count", "Only here.", request=f"{HERE}:ask", params=f"{HERE}:CountParams")
    put_job(monkeypatch, asked)
