"""Upload pages: send files, follow the check, read the report, store, undo."""

import re
from typing import Any

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from annotation.models import Upload
from annotation.parsers import KINDS, is_derived, name_file
from annotation.parsers.writer import COLUMNS
from annotation.selectors.uploads import find_upload, list_uploads
from annotation.services.table_uploads import receive_table
from annotation.services.undo import take_back_upload
from annotation.services.uploads import Incoming, receive_upload, store_checked
from annotation.upload_guide import TABLES, find_sample
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import EvalappError, NotThere
from evalapp.common.pages import page, project_page
from evalapp.common.pagination import keyset
from evalapp.common.queue import live_workers

#: Files with columns of their own, which are matched on the next page.
OWN_COLUMNS = "table"
_KINDS = [
    ("", _("by file name")), (OWN_COLUMNS, _("your own columns")), ("dataset", "dataset"),
    *((name, name) for name in KINDS),
]  # fmt: skip
SHOWN_FAULTS = 200
#: Bytes in which the names of the columns are looked for.
_HEAD = 1 << 16


class _FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """Several files. Empty ones are accepted here and reported by the import."""

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        files = data if isinstance(data, list) else [data] if data else []
        if not files:
            raise forms.ValidationError(self.error_messages["required"], code="required")
        return files


class UploadForm(forms.Form):
    files = _FilesField(
        label=_("Files"),
        widget=_FilesInput(attrs={"multiple": True}),
        help_text=_(
            "Drop files here or choose them. Any table works: a spreadsheet (.xlsx, .csv), JSON, JSONL, Parquet, text "
            "files, or the export of another tool. On the next page you match its columns. Files with the names below "
            "(items, outputs, ratings, ...) are imported directly."
        ),
    )
    kind = forms.ChoiceField(
        label=_("Kind of rows"),
        choices=_KINDS,
        required=False,
        help_text=_("Only needed if the file name does not tell, or if its columns have other names."),
    )
    dry_run = forms.BooleanField(label=_("Dry run: check the files without saving"), required=False)
    replace = forms.BooleanField(
        label=_("Replace stored rows with the same key"),
        required=False,
        help_text=_("Judged outputs are never replaced."),
    )


@project_page(GET="read", POST="write")
def upload_list(request: HttpRequest, project: Project) -> HttpResponse:
    posted = request.method == "POST"
    form = UploadForm(request.POST, request.FILES) if posted else UploadForm()
    if posted and form.is_valid():
        wanted = form.cleaned_data
        files = [Incoming(file.name, file.chunks()) for file in wanted["files"]]
        try:
            if has_own_columns(wanted["files"], wanted["kind"]):
                upload = receive_table(project=project, user=request.user, files=files)
                return redirect("annotation:upload-columns", project.slug, upload.pk)
            upload = receive_upload(
                project=project,
                user=request.user,
                files=files,
                kind=wanted["kind"],
                dry_run=wanted["dry_run"],
                replace=wanted["replace"],
            )
        except EvalappError as error:
            form.add_error("files", error.detail)
        else:
            return redirect("annotation:upload-show", project.slug, upload.pk)
    uploads = keyset(list_uploads(project), order=("-pk",), cursor=request.GET.get("cursor", ""), size=50)
    context = {
        "project": project,
        "form": form,
        "page": uploads,
        "tables": TABLES,
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "annotation/upload/list.html", context, status=422 if posted else 200)


def has_own_columns(files: list[UploadedFile], kind: str) -> bool:
    """Whether the columns are to be matched: none of the files has a name of the interchange format, or the only one
    has other columns."""
    if kind:
        return kind == OWN_COLUMNS
    named = [name for file in files if (name := name_file(file.name or "")) is not None]
    if not named:
        return not any(is_derived(file.name or "") for file in files)
    return (
        len(files) == 1
        and named[0].format in ("csv", "tsv")
        and not named[0].zipped
        and _lacks_columns(files[0], named[0].kind)
    )


def _lacks_columns(file: UploadedFile, kind: str) -> bool:
    """Whether the first line of a table names fewer columns than the table needs."""
    needed = {column.name for table in TABLES if table.name == kind for column in table.columns if column.is_needed}
    needed = needed or set(COLUMNS[kind][:1])
    head = file.read(_HEAD).partition(b"\n")[0].decode("utf-8-sig", "replace").lower()
    file.seek(0)
    names = {cell.strip("\r\"' ") for cell in re.split(r"[,;\t]", head)}
    lacking = needed - names
    # A rating has a dialogue instead of item and system, and a score of an export a set.
    return not (kind == "scores" and "set" in names) and bool(
        lacking - {"item", "system"} or (lacking and "dialogue" not in names)
    )


@project_page(GET="read")
def upload_sample(request: HttpRequest, project: Project, name: str) -> FileResponse:
    """A sample file of a table, which can be uploaded as it is."""
    sample = find_sample(name)
    if sample is None:
        raise NotThere(_("There is no sample file “%(name)s”.") % {"name": name})
    return FileResponse(sample.open("rb"), as_attachment=True, content_type="text/csv; charset=utf-8")


@require_safe
def upload_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    upload = find_upload(user=request.user, pk=pk, slug=slug)
    return page(request, "annotation/upload/show.html", _shown(request, upload), fragment="live")


def _shown(request: HttpRequest, upload: Upload) -> dict[str, Any]:
    run = upload.run
    active = run is not None and run.is_active
    served = {queue for beat in live_workers() for queue in beat.queues} if active else set()
    counts = [(name, upload.counts[name]) for name in ("dataset", *KINDS) if name in upload.counts]
    faults = list(upload.faults.all()[: SHOWN_FAULTS + 1])
    has_more = len(faults) > SHOWN_FAULTS
    return {
        "project": upload.project,
        "upload": upload,
        "run": run,
        "active": active,
        "unserved": [run.queue] if run is not None and active and run.queue not in served else [],
        "counts": counts,
        "faults": faults[:SHOWN_FAULTS],
        "has_more": has_more,
        "may_discard": upload.state in (Upload.State.MAPPING, Upload.State.CHECKED, Upload.State.FAILED)
        or (upload.state == Upload.State.FAULTY and "mapping" in upload.options),
        "has_equal": not has_more and upload.fault_count > len(faults),
        "may_write": can(user=request.user, project=upload.project, need="write"),
    }


@require_POST
def upload_store(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    upload = find_upload(user=request.user, pk=pk, slug=slug, need="write")
    try:
        store_checked(upload=upload, user=request.user)
    except EvalappError as error:
        messages.error(request, error.detail)
    return redirect("annotation:upload-show", slug, pk)


@require_POST
def upload_undo(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    upload = find_upload(user=request.user, pk=pk, slug=slug, need="write")
    try:
        take_back_upload(upload=upload, user=request.user)
    except EvalappError as error:
        context = {**_shown(request, upload), "refused": error}
        return page(request, "annotation/upload/show.html", context, status=error.status)
    messages.success(request, _("The upload is undone."))
    return redirect("annotation:upload-show", slug, pk)
