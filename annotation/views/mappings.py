"""The page on which people say what the columns of their table are, and see the rows that it makes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from annotation.mapping import (
    PRESETS,
    LeftOut,
    Proposal,
    Table,
    list_left_out,
    propose_mapping,
    propose_preset,
    read_mapping,
)
from annotation.mapping.presets import flatten_table, make_draft
from annotation.models import Upload
from annotation.selectors.mappings import list_earlier_mappings, make_preview
from annotation.selectors.uploads import find_upload
from annotation.services.table_uploads import CHANGEABLE, import_table, open_upload, save_mapping
from annotation.services.uploads import check_mapping
from evalapp.common.errors import BadInput, Conflict, Fault, NotThere
from evalapp.common.pages import page

from .mapping_form import MappingForm, describe_member, read_form, show_value


@dataclass(frozen=True)
class Start:
    """The mapping before a change: the saved one, that of an `adopted` earlier upload, or the proposal."""

    document: dict[str, Any]
    proposal: Proposal | None = None
    adopted: Upload | None = None


@require_http_methods(["GET", "HEAD", "POST"])
def upload_columns(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    upload = find_upload(user=request.user, pk=pk, slug=slug, need="write")
    if upload.state not in CHANGEABLE or (upload.state != Upload.State.MAPPING and "mapping" not in upload.options):
        return redirect("annotation:upload-show", slug, pk)
    try:
        start = _find_start(upload)
        # The mapping may say how to read the file.
        table = open_upload(upload, start.document)
        if request.method == "POST":
            return _receive(request, upload, table, start)
        return _render(request, upload, table, start)
    except (BadInput, Conflict) as error:
        messages.error(request, error.detail)
        return redirect("annotation:upload-show", slug, pk)


def _find_start(upload: Upload) -> Start:
    if "mapping" in upload.options:
        return Start(upload.options["mapping"])
    table = open_upload(upload)
    for adopted, document in list_earlier_mappings(upload.project, table.columns):
        return Start(document, adopted=adopted)
    proposal = propose_mapping(table)
    return Start(proposal.mapping.as_json(), proposal)


def _receive(request: HttpRequest, upload: Upload, table: Table, start: Start) -> HttpResponse:
    act = request.POST.get("act", "")
    try:
        document = _choose(request, upload, table, start, act)
    except BadInput as error:
        return _render(request, upload, table, start, error)
    if act != "import":
        save_mapping(upload=upload, document=document)
        return redirect("annotation:upload-columns", upload.project.slug, upload.pk)
    try:
        import_table(
            upload=upload,
            user=request.user,
            document=document,
            dry_run="dry_run" in request.POST,
            replace="replace" in request.POST,
        )
    except BadInput as error:
        return _render(request, upload, table, Start(document), error)
    return redirect("annotation:upload-show", upload.project.slug, upload.pk)


def _choose(request: HttpRequest, upload: Upload, table: Table, start: Start, act: str) -> dict[str, Any]:
    """The mapping that was chosen: the one in the form, the proposal, an earlier one, or one as JSON."""
    if act == "start":
        name = request.POST.get("start", "")
        for earlier, document in list_earlier_mappings(upload.project, table.columns):
            if str(earlier.pk) == name:
                return document
        proposal = propose_preset(table, PRESETS[name]) if name in PRESETS else propose_mapping(open_upload(upload))
        return proposal.mapping.as_json()
    if act == "json":
        try:
            return check_mapping(json.loads(request.POST.get("json", "")))
        except ValueError as error:
            text = _("This is not a JSON object: %(error)s") % {"error": error}
            raise BadInput(text, faults=[Fault(text)]) from error
    return read_form(request.POST, flatten_table(table, start.document.get("preset", "")), start.document)


def _render(
    request: HttpRequest, upload: Upload, table: Table, start: Start, error: BadInput | None = None
) -> HttpResponse:
    document, proposal, adopted = start.document, start.proposal, start.adopted
    earlier = list_earlier_mappings(upload.project, table.columns)
    faults = list(error.faults) if error is not None else []
    preview = make_preview(table, None)
    if error is None:
        try:
            preview = make_preview(table, read_mapping(check_mapping(document)))
        except BadInput as incomplete:
            faults = list(incomplete.faults)
    preset = PRESETS.get(document.get("preset", ""))
    questions = proposal.questions if proposal is not None and error is None else []
    asked = {_name_subject(question.member) for question in questions}
    form, draft = MappingForm(flatten_table(table, document.get("preset", "")), document), make_draft(document)
    left_out = list_left_out(table, draft)
    context = {
        "project": upload.project,
        "upload": upload,
        "form": form,
        "preview": preview,
        "rows": [(number, [show_value(value) for value in values]) for number, values in preview.rows],
        "made": [
            (name, names, [[show_value(value) for value in values] for values in rows], n - len(rows))
            for name, names, rows, n in preview.tables
        ],
        "missing": [
            (describe_member(fault.field, document), fault.message)
            for fault in faults
            if error is not None or _name_subject(fault.field) not in asked
        ],
        "presets": sorted(((one.name, _(one.label)) for one in PRESETS.values()), key=lambda one: one[1].lower()),
        "error": error,
        "earlier": earlier,
        "adopted": adopted,
        "preset": preset
        and {"name": preset.name, "label": _(preset.label), "remark": preset.remark and _(preset.remark)},
        "questions": questions,
        "reasons": proposal.reasons if proposal is not None else [],
        "left_out": left_out,
        "advice": list(_group_by_message(left_out).items()),
        "lacks_items": not draft.creates_items() and not upload.project.items.exists(),
        "hidden": form.count_hidden(),
        "asks_for_values": any(one.member.startswith(("reading", "values", "ids")) for one in questions),
        "only": list(draft.only.items()),
        "others": upload.files[1:],
    }
    return page(request, "annotation/upload/columns.html", context, status=200 if error is None else 422)


def _name_subject(member: str) -> str:
    """What a question or a fault is about, without its place in the mapping: the field, or the list of columns."""
    return member.partition("[")[0].rpartition(".")[2]


def _group_by_message(left_out: list[LeftOut]) -> dict[str, list[LeftOut]]:
    found: dict[str, list[LeftOut]] = {}
    for one in left_out:
        found.setdefault(one.message, []).append(one)
    return found


@require_safe
def upload_mapping(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The mapping of an upload as a file, for `load --map`, the API and the client."""
    upload = find_upload(user=request.user, pk=pk, slug=slug)
    if "mapping" not in upload.options:
        raise NotThere(_("This upload has no mapping."))
    response = JsonResponse(upload.options["mapping"], json_dumps_params={"indent": 1, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="mapping-{upload.pk}.json"'
    return response
