"""Pages of background runs: what waits, what is running and how far, what came out, cancel and retry."""

from __future__ import annotations

import json

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import Conflict
from evalapp.common.jobs import all_jobs, find_job
from evalapp.common.models import Run
from evalapp.common.pages import page
from evalapp.common.pagination import keyset
from evalapp.common.queue import cancel_run, live_workers, retry_run, words_of_waiting
from evalapp.common.run_facts import asked_of, facts_of
from evalapp.common.selectors import find_run, list_runs, log_tail


@login_required
@require_safe
def run_list(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    state, kind = request.GET.get("state", ""), request.GET.get("kind", "")
    found = keyset(
        list_runs(project, state=state, kind=kind), order=("-pk",), cursor=request.GET.get("cursor", ""), size=50
    )
    active = any(run.is_active for run in found.rows)
    served = {queue for beat in live_workers() for queue in beat.queues} if active else set()
    context = {
        "project": project,
        "page": found,
        "active": active,
        "unserved": sorted({run.queue for run in found.rows if run.is_active} - served),
        "unsent": any(run.is_unsent for run in found.rows),
        "states": Run.State.choices,
        "kinds": sorted(((job.kind, job.name) for job in all_jobs()), key=lambda pair: pair[1].lower()),
        "state": state,
        "kind": kind,
    }
    return page(request, "common/runs/list.html", context, fragment="table")


@login_required
@require_safe
def run_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = find_run(user=request.user, pk=pk, slug=slug)
    whole = request.GET.get("log") == "all"
    served = {queue for beat in live_workers() for queue in beat.queues} if run.is_active else {run.queue}
    job = find_job(run.kind)
    context = {
        "project": run.project,
        "run": run,
        "kind_label": job.name if job else run.kind,
        "asked": asked_of(run.params),
        "waiting": words_of_waiting(run),
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
    """Short values as facts, the rest as JSON; `result_url` is where the result can be seen, `result_gone` why it
    cannot any more."""
    result = run.result or {}
    facts, rest = facts_of(result)
    url = result.get("url", "")
    shown = isinstance(url, str) and url.startswith("/") and not url.startswith("//")
    job = find_job(run.kind)
    gone = job.words_of_gone(run) if job and result else ""
    return {
        "facts": facts,
        "rest": json.dumps(rest, indent=2, ensure_ascii=False) if rest else "",
        "result_url": url if shown and not gone else "",
        "result_gone": gone,
    }


@login_required
@require_POST
def run_cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = find_run(user=request.user, pk=pk, slug=slug, need="write")
    try:
        cancel_run(run=run, user=request.user)
    except Conflict as error:
        messages.error(request, error.detail)
    return redirect("run", slug, pk)


@login_required
@require_POST
def run_retry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = find_run(user=request.user, pk=pk, slug=slug, need="write")
    try:
        retry_run(run=run, user=request.user)
    except Conflict as error:
        messages.error(request, error.detail)
    return redirect("run", slug, pk)
