"""The kinds of background job that exist. Each room registers its own in `jobs.py`; the queue knows them by
name only, and a pipeline is imported by the worker that runs it, never by the web process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import BadInput
from .hooks import load_target
from .params import read_params


@dataclass(frozen=True)
class Job:
    """`pipeline` is `module:function(context, **params) -> result dict`. Where programs may ask for this
    kind by `POST projects/{slug}/runs/`, `params` is the dataclass `module:Class` of what they send and `request` is
    `module:function(*, project, user, wishes) -> Run`, which checks the rest and enqueues; a kind without them is
    started by its own door only. `fragment` is the name of an address
    (of project and run) whose fragment the page of such a run shows below its progress. `give_up` is
    `module:function(run)`, told of every run that ended without success, also without its pipeline (cancelled while it
    waited, or lost with its worker too often): it tidies up what the pipeline may have left. `label` is what people
    call the kind. `gone` is `module:function(run) -> str`: that what a run made was deleted since, in words, or
    nothing. `spent` is `module:function(run) -> bool`: that a run which ended without success has nothing left to be
    tried again with."""

    kind: str
    queue: str
    pipeline: str
    help: str
    request: str = ""
    params: str = ""
    fragment: str = ""
    give_up: str = ""
    label: str = ""
    gone: str = ""
    spent: str = ""

    @property
    def name(self) -> str:
        return self.label or self.kind.replace("_", " ").replace("-", " ").capitalize()

    def load(self) -> Callable[..., dict[str, Any]]:
        return load_target(self.pipeline)

    def load_request(self) -> Callable[..., Any]:
        return load_target(self.request)

    def load_params(self) -> type:
        return load_target(self.params)

    def ask(self, *, project: Any, user: Any, params: Mapping[str, Any]) -> Any:
        """Queue a run as a program asks for it; raises `BadInput` for what the dataclass does not know or allow."""
        return self.load_request()(project=project, user=user, wishes=read_params(self.load_params(), params))

    def tidy_up(self, run: Any) -> None:
        if self.give_up:
            load_target(self.give_up)(run)

    def words_of_gone(self, run: Any) -> str:
        return str(load_target(self.gone)(run)) if self.gone else ""

    def is_spent(self, run: Any) -> bool:
        return bool(self.spent) and bool(load_target(self.spent)(run))


_JOBS: dict[str, Job] = {}


def register(job: Job) -> None:
    _JOBS[job.kind] = job


def get_job(kind: str) -> Job:
    if kind not in _JOBS:
        raise BadInput(f"There is no job of kind “{kind}”. There are: {', '.join(sorted(_JOBS))}.")
    return _JOBS[kind]


def find_job(kind: str) -> Job | None:
    """None for the kind of a run that another version made."""
    return _JOBS.get(kind)


def tidy_up(run: Any) -> None:
    """For a run that ended without success. One of a kind that this version does not have can end all the same."""
    if job := _JOBS.get(run.kind):
        job.tidy_up(run)


def all_jobs() -> list[Job]:
    return [_JOBS[kind] for kind in sorted(_JOBS)]
