"""The kinds of background job. Each app registers its own in `jobs.py`. The queue knows only their names; the worker
that runs a pipeline imports it, the web process never does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from .errors import BadInput
from .hooks import load_target
from .params import read_params

#: All queues, in the order in which a worker of several serves them: short work first, trainings last.
QUEUES = ("live", "cpu", "gpu", "train")
#: Queue -> the queue that takes its runs while no worker serves it.
FALLBACK = {"train": "gpu"}


@dataclass(frozen=True)
class Job:
    """A kind of background job. Targets are `module:function` names.

    pipeline: `(context, **params) -> dict`, does the work.
    params, request: for kinds that can be started by `POST projects/{slug}/runs/`: the dataclass `module:Class` of the
        request, and `(*, project, user, options) -> Run`, which validates the rest and enqueues the run.
    fragment: name of a URL (of project and run) whose HTML fragment the page of a run shows below its progress.
    give_up: `(run)`, called for every run that ended without success, even if its pipeline never ran (cancelled while
        waiting, or lost with its worker too often); removes leftovers.
    label: name of the kind for users.
    gone: `(run) -> str`, says that the result of the run has been deleted since; empty if not.
    spent: `(run) -> bool`, whether the input of an unsuccessful run has been removed, so that it cannot be retried.
    event: first part of the names of the events by which webhooks and mails report its end: `run`, `training`, or
        empty for none.
    is_former: a name of an earlier version, which the API still accepts."""

    kind: str
    queue: str
    pipeline: str
    help: str
    request: str = ""
    params: str = ""
    fragment: str = ""
    give_up: str = ""
    label: Any = ""
    gone: str = ""
    spent: str = ""
    event: str = ""
    is_former: bool = False

    @property
    def name(self) -> str:
        return str(self.label) or self.kind.replace("_", " ").replace("-", " ").capitalize()

    def load(self) -> Callable[..., dict[str, Any]]:
        return load_target(self.pipeline)

    def load_request(self) -> Callable[..., Any]:
        return load_target(self.request)

    def load_params(self) -> type:
        return load_target(self.params)

    def ask(self, *, project: Any, user: Any, params: Mapping[str, Any]) -> Any:
        """Enqueue a run as requested by the API. Raises `BadInput` for unknown or invalid members."""
        return self.load_request()(project=project, user=user, options=read_params(self.load_params(), params))

    def tidy_up(self, run: Any) -> None:
        if self.give_up:
            load_target(self.give_up)(run)

    def explain_gone(self, run: Any) -> str:
        """Return the reason why the result of a run no longer exists; empty if it does."""
        return str(load_target(self.gone)(run)) if self.gone else ""

    def is_spent(self, run: Any) -> bool:
        return bool(self.spent) and bool(load_target(self.spent)(run))


_JOBS: dict[str, Job] = {}


def register(job: Job) -> None:
    _JOBS[job.kind] = job


def get_job(kind: str) -> Job:
    if kind not in _JOBS:
        raise BadInput(
            _("Unknown kind of run “%(kind)s”. Known: %(kinds)s.") % {"kind": kind, "kinds": ", ".join(sorted(_JOBS))}
        )
    return _JOBS[kind]


def find_job(kind: str) -> Job | None:
    """Return the job of a kind; None for a kind of another version."""
    return _JOBS.get(kind)


def tidy_up(run: Any) -> None:
    """Remove the leftovers of a run that ended without success; nothing for a kind of another version."""
    if job := _JOBS.get(run.kind):
        job.tidy_up(run)


def all_jobs() -> list[Job]:
    return [_JOBS[kind] for kind in sorted(_JOBS)]
