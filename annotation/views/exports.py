"""The page of exports: ask for one, download its files."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from annotation.downloads import send_file
from annotation.exporters.formats import FORMATS
from annotation.services.exports import folder_of, request_export
from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import NotThere
from evalapp.common.models import Run
from evalapp.common.pages import page
from evalapp.common.pagination import keyset
from evalapp.common.queue import live_workers
from evalapp.common.selectors import find_run, runs_of

_WORDS = {
    "jsonl": "JSONL - exact, one object a line; load of it gives an equal project",
    "csv": "CSV - exact, lists as JSON in a cell; load reads it, too",
    "parquet": "Parquet - typed columns for pandas, Polars and DuckDB",
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def export_list(request: HttpRequest, slug: str) -> HttpResponse:
    posted = request.method == "POST"
    project = get_project(user=request.user, slug=slug, need="write" if posted else "read")
    if posted:
        request_export(project=project, user=request.user, format=request.POST.get("format", "jsonl"))
        return redirect("annotation:export-list", slug)
    found = keyset(runs_of(project, kind="export"), order=("-pk",), cursor=request.GET.get("cursor", ""), size=20)
    active = any(run.is_active for run in found.rows)
    served = {queue for beat in live_workers() for queue in beat.queues} if active else set()
    context: dict[str, Any] = {
        "project": project,
        "page": found,
        "active": active,
        "may_write": can(user=request.user, project=project, need="write"),
        "rows": [(run, _files(run)) for run in found.rows],
        "formats": [(name, _WORDS[name]) for name in FORMATS],
        "unserved": sorted({run.queue for run in found.rows if run.is_active} - served),
    }
    return page(request, "annotation/export/list.html", context, fragment="table")


def _files(run: Run) -> dict[str, Any]:
    """What can be downloaded; nothing when the files were cleared away."""
    if run.state != Run.State.SUCCEEDED or not run.result or not folder_of(run).is_dir():
        return {}
    return {"archive": run.result.get("archive"), "bytes": run.result.get("bytes"), "files": run.result["files"]}


@login_required
@require_safe
def export_file(request: HttpRequest, slug: str, pk: int, name: str) -> HttpResponseBase:
    run = find_run(user=request.user, pk=pk, slug=slug)
    if run.kind != "export":
        raise NotThere("There is no such export that you can see.")
    return send_file(run, name)
