"""The exports page: request an export, download its files, delete them."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from annotation.downloads import send_file
from annotation.exporters.options import ExportOptions
from annotation.services.exports import delete_export, get_export_folder, list_exports, request_export
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import NotThere
from evalapp.common.models import Run
from evalapp.common.pages import page, project_page
from evalapp.common.pagination import keyset
from evalapp.common.queue import live_workers
from evalapp.common.selectors import find_run

_FORMATS = {
    "jsonl": _("JSONL: exact, one object per line; importing it recreates the project"),
    "csv": _("CSV: exact, lists as JSON in a cell; can be imported"),
    "safe-csv": _("CSV for spreadsheets: cells are protected from being read as formulas; can be imported"),
    "parquet": _("Parquet: typed columns for pandas, Polars, DuckDB and datasets; can be imported"),
}
_LAYOUTS = {
    "xlsx": _(
        "Excel workbook: a row per item with columns for each system, and a sheet for each table; long texts are cut"
    ),
    "wide-csv": _(
        "Wide CSV: a row per item with columns for each system and its mean ratings; without raters and comparisons"
    ),
    "preferences": _(
        "Preference pairs: prompt, chosen and rejected, for DPO and reward models; without ties and raters"
    ),
    "label-studio": _("Label Studio: tasks with annotations and labelling configurations; without dialogues"),
    "argilla": _("Argilla: records with suggestions and the settings of their datasets; without dialogues"),
    "mt-metrics-eval": _(
        "mt-metrics-eval: folders of system outputs, human scores and metric scores; without raters and comparisons"
    ),
}
_LEVELS = {
    "per-rater": _("One row per judgement"),
    "aggregated": _("Aggregated over raters, by output and by pair; leaderboards cannot be recomputed from it"),
    "both": _("Both"),
}
_RATERS = {
    "kept": _("Pseudonyms for annotators; uploaded rater ids unless they identify a person"),
    "pseudonyms": _("Pseudonyms for all raters"),
    "as-uploaded": _("Original rater ids"),
}


def _radio(label: str, choices: dict[str, str]) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=list(choices.items()), widget=forms.RadioSelect)


class ExportForm(forms.Form):
    """The options in `annotation.exporters.options`."""

    format = forms.ChoiceField(
        label=_("Format"),
        choices=[
            (_("The whole project"), list(_FORMATS.items())),
            (_("For other programs; of the options below, only rater names apply"), list(_LAYOUTS.items())),
        ],
        widget=forms.RadioSelect,
    )
    level = _radio(_("Judgements"), _LEVELS)
    scores = forms.BooleanField(
        label=_("Include scores and leaderboards that can be recomputed"), required=False, initial=True
    )
    raters = _radio(_("Rater names"), _RATERS)
    answers = forms.BooleanField(label=_("Include raw answers of language models that judge"), required=False)
    judgements = forms.BooleanField(
        label=_("Include order, sides and selection probability of each judgement"), required=False
    )
    attributes = forms.BooleanField(
        label=_("Include times, notes and statistics of individual raters, who have consented"), required=False
    )
    audit = forms.BooleanField(label=_("Include the audit log"), required=False)


def _initial() -> dict[str, Any]:
    return {name: value for name, value in ExportOptions().as_dict().items() if name in ExportForm.base_fields}


def _sent(post: QueryDict) -> dict[str, Any]:
    """The submitted options; choices that were not sent get their default."""
    usual = {name: value for name, value in _initial().items() if not isinstance(value, bool)}
    return {**usual, **post.dict()}


@project_page(GET="read", POST="write")
def export_list(request: HttpRequest, project: Project) -> HttpResponse:
    posted = request.method == "POST"
    form = ExportForm(_sent(request.POST)) if posted else ExportForm(initial=_initial())
    if posted and form.is_valid():
        request_export(project=project, user=request.user, **form.cleaned_data)
        return redirect("annotation:export-list", project.slug)
    exports = keyset(list_exports(project), order=("-pk",), cursor=request.GET.get("cursor", ""), size=20)
    active = any(run.is_active for run in exports.rows)
    served = {queue for beat in live_workers() for queue in beat.queues} if active else set()
    context: dict[str, Any] = {
        "project": project,
        "form": form,
        "page": exports,
        "active": active,
        "may_write": can(user=request.user, project=project, need="write"),
        "rows": [(run, _files(run)) for run in exports.rows],
        "unserved": sorted({run.queue for run in exports.rows if run.is_active} - served),
    }
    return page(request, "annotation/export/list.html", context, fragment="table", status=400 if posted else 200)


def _files(run: Run) -> dict[str, Any]:
    """The files to download; empty after they were deleted."""
    if run.state != Run.State.SUCCEEDED or not run.result or not get_export_folder(run).is_dir():
        return {}
    return {"archive": run.result.get("archive"), "bytes": run.result.get("bytes"), "files": run.result["files"]}


@require_safe
def export_file(request: HttpRequest, slug: str, pk: int, name: str) -> HttpResponseBase:
    run = find_run(user=request.user, pk=pk, slug=slug)
    if run.kind != "export":
        raise NotThere(str(_("There is no such export that you can see.")))
    return send_file(run, name)


@require_POST
def export_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    run = find_run(user=request.user, pk=pk, slug=slug, need="write")
    if run.kind != "export":
        raise NotThere(str(_("There is no such export that you can see.")))
    delete_export(run=run, user=request.user)
    return redirect("annotation:export-list", slug)
