"""The kinds of background job that exist. Each room registers its own in `jobs.py`; the queue knows them by
name only, and a pipeline is imported by the worker that runs it, never by the web process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .errors import BadInput


@dataclass(frozen=True)
class Job:
    """`pipeline` is `module:function(context, **params) -> result dict`."""

    kind: str
    queue: str
    pipeline: str
    help: str

    def load(self) -> Callable[..., dict[str, Any]]:
        module, _, name = self.pipeline.partition(":")
        return getattr(import_module(module), name)


_JOBS: dict[str, Job] = {}


def register(job: Job) -> None:
    _JOBS[job.kind] = job


def get_job(kind: str) -> Job:
    if kind not in _JOBS:
        raise BadInput(f"There is no job of kind “{kind}”. There are: {', '.join(sorted(_JOBS))}.")
    return _JOBS[kind]


def all_jobs() -> list[Job]:
    return [_JOBS[kind] for kind in sorted(_JOBS)]
