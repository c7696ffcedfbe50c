"""Pages of background runs: list, progress, result, cancel and retry."""

import json
from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import Conflict
from evalapp.common.jobs import all_jobs, find_job
from evalapp.common.models import Run
from evalapp.common.pages import page, project_page, read_choice
from evalapp.common.pagination import keyset
from evalapp.common.queue import cancel_run, explain_waiting, list_served_queues, retry_run
from evalapp.common.run_facts import describe_params, split_result
from evalapp.common.selectors import STOPPED, find_run, list_runs, log_tail


@project_page(GET="read")
def run_list(request: HttpRequest, project: Project) -> HttpResponse:
    states = [*Run.State.choices, (STOPPED, Run.Cause.INPUT.label)]
    kinds = sorted(((job.kind, job.name) for job in all_jobs() if not job.is_former), key=lambda pair: pair[1].lower())
    state, kind = read_choice(request, "state", dict(states)), read_choice(request, "kind", dict(kinds))
    runs = keyset(
        list_runs(project, state=state, kind=kind), order=("-pk",), cursor=request.GET.get("cursor", ""), size=50
    )
    queues = {run.queue for run in runs.rows if run.is_active}
    context = {
        "project": project,
        "page": runs,
        "active": bool(queues),
        "unserved": sorted(queues - list_served_queues()) if queues else [],
        "unsent": any(run.is_unsent for run in runs.rows),
        "states": states,
        "kinds": kinds,
        "state": state,
        "kind": kind,
    }
    return page(request, "common/runs/list.html", context, fragment="table")


@require_safe
def run_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = find_run(user=request.user, pk=pk, slug=slug)
    whole = request.GET.get("log") == "all"
    served = list_served_queues() if run.is_active else {run.queue}
    job = find_job(run.kind)
    context = {
        "project": run.project,
        "run": run,
        "kind_label": job.name if job else run.kind,
        "asked": list(describe_params(run.params)),
        "waiting": explain_waiting(run),
        "unserved": [run.queue] if run.queue not in served else [],
        "unsent": run.is_unsent,
        "log": log_tail(run, None if whole else 20),
        "whole": whole,
        "may_write": can(user=request.user, project=run.project, need="write"),
        "may_retry": run.state in (Run.State.FAILED, Run.State.CANCELLED) and not (job and job.is_spent(run)),
        "below": job.fragment if job else "",
        **_result(run),
    }
    return page(request, "common/runs/show.html", context, fragment="live")


def _result(run: Run) -> dict:
    """Return short values as facts and others as JSON, with the page of the result (`result_url`) or the reason why it
    no longer exists (`result_gone`)."""
    result = run.result or {}
    facts, rest = split_result(result)
    url = result.get("url", "")
    is_local = isinstance(url, str) and url.startswith("/") and not url.startswith("//")
    job = find_job(run.kind)
    gone = job.explain_gone(run) if job and result else ""
    return {
        "facts": facts,
        "rest": json.dumps(rest, indent=2, ensure_ascii=False) if rest else "",
        "result_url": url if is_local and not gone else "",
        "result_gone": gone,
    }


@require_POST
def run_cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _change(request, slug, pk, cancel_run)


@require_POST
def run_retry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _change(request, slug, pk, retry_run)


def _change(request: HttpRequest, slug: str, pk: int, change: Callable[..., Run]) -> HttpResponse:
    run = find_run(user=request.user, pk=pk, slug=slug, need="write")
    try:
        change(run=run, user=request.user)
    except Conflict as error:
        messages.error(request, error.detail)
    return redirect("run", slug, pk)
