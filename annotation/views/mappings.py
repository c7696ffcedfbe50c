"""The page on which people say what the columns of their table are, and see the rows that it makes."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from annotation.mapping import PRESETS, Table, propose_mapping, read_mapping
from annotation.mapping.presets import flatten_table
from annotation.models import Upload
from annotation.selectors.mappings import list_earlier_mappings, make_preview
from annotation.selectors.uploads import find_upload
from annotation.services.table_uploads import CHANGEABLE, import_table, open_upload, save_mapping
from annotation.services.uploads import check_mapping
from evalapp.common.errors import BadInput, Conflict, EvalappError, Fault, NotThere
from evalapp.common.pages import page

from .mapping_form import MOST_COLUMNS, MappingForm, describe_member, read_form, show_value


@require_http_methods(["GET", "HEAD", "POST"])
def upload_columns(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    upload = find_upload(user=request.user, pk=pk, slug=slug, need="write")
    if upload.state not in CHANGEABLE or (upload.state != Upload.State.MAPPING and "mapping" not in upload.options):
        return redirect("annotation:upload-show", slug, pk)
    saved: dict[str, Any] = upload.options.get("mapping", {})
    try:
        table = open_upload(upload, saved)
        if request.method == "POST":
            return _receive(request, upload, table)
        return _render(request, upload, table, saved)
    except EvalappError as error:
        if isinstance(error, BadInput | Conflict):
            messages.error(request, error.detail)
            return redirect("annotation:upload-show", slug, pk)
        raise


def _receive(request: HttpRequest, upload: Upload, table: Table) -> HttpResponse:
    here = redirect("annotation:upload-columns", upload.project.slug, upload.pk)
    act = request.POST.get("act", "")
    try:
        document = _choose(request, upload, table, act)
    except BadInput as error:
        return _render(request, upload, table, json.loads(request.POST.get("base", "{}")), error, status=422)
    if act != "import":
        save_mapping(upload=upload, document=document)
        return here
    try:
        import_table(
            upload=upload,
            user=request.user,
            document=document,
            dry_run="dry_run" in request.POST,
            replace="replace" in request.POST,
        )
    except BadInput as error:
        return _render(request, upload, table, document, error, status=422)
    return redirect("annotation:upload-show", upload.project.slug, upload.pk)


def _choose(request: HttpRequest, upload: Upload, table: Table, act: str) -> dict[str, Any]:
    """The mapping that was chosen: the one in the form, the proposal, an earlier one, or one as JSON."""
    if act == "start":
        start = request.POST.get("start", "")
        for earlier, document in list_earlier_mappings(upload.project, table.columns):
            if str(earlier.pk) == start:
                return document
        return propose_mapping(table).mapping.as_json()
    try:
        if act == "json":
            return check_mapping(json.loads(request.POST.get("json", "")))
        base = json.loads(request.POST.get("base", "{}"))
    except ValueError as error:
        text = _("This is not a JSON object: %(error)s") % {"error": error}
        raise BadInput(text, faults=[Fault(text)]) from error
    if not isinstance(base, dict):
        base = {}
    return read_form(request.POST, flatten_table(table, base.get("preset", "")), base)


def _render(
    request: HttpRequest,
    upload: Upload,
    table: Table,
    document: dict[str, Any],
    error: BadInput | None = None,
    status: int = 200,
) -> HttpResponse:
    """The form with the saved mapping; before the first one with that of an earlier upload, or the proposal."""
    earlier = list_earlier_mappings(upload.project, table.columns)
    proposal, adopted = None, None
    if not document and earlier:
        adopted, document = earlier[0]
    elif not document:
        proposal = propose_mapping(table)
        document = proposal.mapping.as_json()
    if adopted is not None or proposal is not None:
        table = open_upload(upload, document)  # its mapping may say how to read it
    faults = list(error.faults) if error is not None else []
    preview = make_preview(table, None)
    if error is None:
        try:
            preview = make_preview(table, read_mapping(check_mapping(document)))
        except BadInput as incomplete:
            faults = list(incomplete.faults)
    preset = PRESETS.get(document.get("preset", ""))
    context = {
        "project": upload.project,
        "upload": upload,
        "form": MappingForm(flatten_table(table, document.get("preset", "")), document),
        "preview": preview,
        "rows": [(number, [show_value(value) for value in values]) for number, values in preview.rows],
        "made": [
            (name, names, [[show_value(value) for value in values] for values in rows], n - len(rows))
            for name, names, rows, n in preview.tables
        ],
        "missing": [(describe_member(fault.field), fault.message) for fault in faults],
        "error": error,
        "earlier": earlier,
        "adopted": adopted,
        "preset": preset
        and {"name": preset.name, "label": _(preset.label), "remark": preset.remark and _(preset.remark)},
        "questions": proposal.questions if proposal is not None else [],
        "reasons": proposal.reasons if proposal is not None else [],
        "unused": proposal.unused if proposal is not None else [],
        "is_cut": len(table.columns) > MOST_COLUMNS,
        "others": upload.files[1:],
    }
    return page(request, "annotation/upload/columns.html", context, status=status)


@require_safe
def upload_mapping(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The mapping of an upload as a file, for `load --map`, the API and the client."""
    upload = find_upload(user=request.user, pk=pk, slug=slug)
    if "mapping" not in upload.options:
        raise NotThere(_("This upload has no mapping."))
    response = JsonResponse(upload.options["mapping"], json_dumps_params={"indent": 1, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="mapping-{upload.pk}.json"'
    return response
