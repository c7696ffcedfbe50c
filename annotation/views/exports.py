"""The page of exports: ask for one, download its files, delete them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.downloads import send_file
from annotation.exporters.wishes import Wishes
from annotation.services.exports import delete_export, folder_of, list_exports, request_export
from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import NotThere
from evalapp.common.models import Run
from evalapp.common.pages import page
from evalapp.common.pagination import keyset
from evalapp.common.queue import live_workers
from evalapp.common.selectors import find_run

_FORMATS = {
    "jsonl": "JSONL - exact, one object a line; load of it gives an equal project",
    "csv": "CSV - exact, lists as JSON in a cell; load reads it, too",
    "safe-csv": "CSV for spreadsheets - no cell can be taken for a formula; load reads it, too",
    "parquet": "Parquet - typed columns for pandas, Polars, DuckDB and datasets; load reads it, too",
}
_LEVELS = {
    "per-rater": "One row for each judgement",
    "aggregated": "Summed up over raters, by output and by pair; tables cannot be computed again from it",
    "both": "Both",
}
_RATERS = {
    "kept": "Pseudonyms for people here; ids of uploads as they came, unless they tell who somebody is",
    "pseudonyms": "Pseudonyms for everybody",
    "as-uploaded": "Ids of uploads as they came, whatever they tell",
}


def _radio(label: str, choices: dict[str, str]) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=list(choices.items()), widget=forms.RadioSelect)


class ExportForm(forms.Form):
    """The wishes of `annotation.exporters.wishes`."""

    format = _radio("Format", _FORMATS)
    level = _radio("Judgements", _LEVELS)
    scores = forms.BooleanField(
        label="With scores, and tables that anybody can compute again", required=False, initial=True
    )
    raters = _radio("Names of raters", _RATERS)
    judgements = forms.BooleanField(
        label="With order, sides and chance of each judgement of a campaign", required=False
    )
    attributes = forms.BooleanField(
        label="With times, remarks and figures of single people: they have agreed to it", required=False
    )
    audit = forms.BooleanField(label="With the log of who did what", required=False)


def _initial() -> dict[str, Any]:
    return {name: value for name, value in Wishes().as_dict().items() if name in ExportForm.base_fields}


def _sent(post: QueryDict) -> dict[str, Any]:
    """What was chosen; of a choice that was not sent the usual one."""
    usual = {name: value for name, value in _initial().items() if not isinstance(value, bool)}
    return {**usual, **post.dict()}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def export_list(request: HttpRequest, slug: str) -> HttpResponse:
    posted = request.method == "POST"
    project = get_project(user=request.user, slug=slug, need="write" if posted else "read")
    form = ExportForm(_sent(request.POST)) if posted else ExportForm(initial=_initial())
    if posted and form.is_valid():
        request_export(project=project, user=request.user, **form.cleaned_data)
        return redirect("annotation:export-list", slug)
    found = keyset(list_exports(project), order=("-pk",), cursor=request.GET.get("cursor", ""), size=20)
    active = any(run.is_active for run in found.rows)
    served = {queue for beat in live_workers() for queue in beat.queues} if active else set()
    context: dict[str, Any] = {
        "project": project,
        "form": form,
        "page": found,
        "active": active,
        "may_write": can(user=request.user, project=project, need="write"),
        "rows": [(run, _files(run)) for run in found.rows],
        "unserved": sorted({run.queue for run in found.rows if run.is_active} - served),
    }
    return page(request, "annotation/export/list.html", context, fragment="table", status=400 if posted else 200)


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


@login_required
@require_POST
def export_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = find_run(user=request.user, pk=pk, slug=slug, need="write")
    if run.kind != "export":
        raise NotThere("There is no such export that you can see.")
    delete_export(run=run, user=request.user)
    return redirect("annotation:export-list", slug)
