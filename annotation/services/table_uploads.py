"""Uploads of any layout: files are received, their columns are mapped, and then they are imported like any others."""

import shutil
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from annotation.mapping import PRESETS, Reading, Table, open_files, open_table, propose_mapping, propose_preset
from annotation.mapping.aligned import AlignedSource
from annotation.models import Upload, UploadFault
from annotation.parsers import StopReading
from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.room import check_room

from .uploads import Incoming, check_mapping, get_upload_folder, remove_files, repeat_import, save_files

#: An upload in these states can get another mapping: its files are still there.
CHANGEABLE = (Upload.State.MAPPING, Upload.State.CHECKED, Upload.State.FAULTY)


def receive_table(*, project: Project, user: User, files: Iterable[Incoming]) -> Upload:
    """Save files whose columns will be mapped. Nothing is read yet, except whether they can be."""
    check_room()
    draft = settings.UPLOADS_DIR / f"incoming-{uuid4().hex}"
    upload = Upload(project=project, state=Upload.State.MAPPING, created_by=user)
    try:
        save_files(upload, draft, files)
        with transaction.atomic():
            upload.save()
            shutil.rmtree(get_upload_folder(upload), ignore_errors=True)
            draft.rename(get_upload_folder(upload))
            audit.record(verb="upload.received", project=project, actor=user, object=upload)
        open_upload(upload)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        if upload.pk is not None:
            remove_files(upload)
            Upload.objects.filter(pk=upload.pk).delete()
        raise
    return upload


def open_upload(upload: Upload, document: dict[str, Any] | None = None) -> Table:
    """The table of an upload, read as the mapping says. Raises `BadInput` if it cannot be read."""
    reading = Reading(**document.get("reading", {})) if document is not None else None
    try:
        folder, file = get_upload_folder(upload), upload.files[0]
        table = open_table(folder / file["stored"], file["name"], reading)
        if len(upload.files) > 1 and isinstance(table.source, AlignedSource):
            table = open_files([(one["name"], folder / one["stored"]) for one in upload.files])
        if not table.sample:
            raise StopReading(_("The file has no rows that can be read."))
    except StopReading as stop:
        raise BadInput(stop.message, faults=[Fault(stop.message, "", upload.files[0]["name"], stop.line)]) from stop
    except FileNotFoundError as error:
        raise Conflict(_("The files of this upload are gone. Upload them again.")) from error
    return table


def receive_mapped(
    *,
    project: Project,
    user: User,
    files: Iterable[Incoming],
    mapping: Any,
    dry_run: bool = False,
    replace: bool = False,
) -> Upload:
    """Save files and queue their import with a mapping: a JSON object, the name of a preset, or `auto`."""
    if not isinstance(mapping, str):
        check_mapping(mapping)
    upload = receive_table(project=project, user=user, files=files)
    try:
        document = find_mapping(open_upload(upload), mapping) if isinstance(mapping, str) else mapping
        return import_table(upload=upload, user=user, document=document, dry_run=dry_run, replace=replace)
    except BaseException:
        remove_files(upload)
        Upload.objects.filter(pk=upload.pk).delete()
        raise


def find_mapping(table: Table, name: str) -> dict[str, Any]:
    """The mapping of a preset, or for `auto` the proposal. Raises `BadInput` if it leaves a question open."""
    if name == "auto":
        proposal = propose_mapping(table)
    elif name in PRESETS:
        proposal = propose_preset(table, PRESETS[name])
    else:
        text = _("There is no preset “%(name)s”. Write a JSON object, auto, or one of: %(names)s.")
        raise BadInput.for_field("mapping", text % {"name": name, "names": ", ".join(PRESETS)})
    if proposal.questions:
        faults = [Fault(question.message, question.member) for question in proposal.questions]
        raise BadInput(
            _("The file does not tell everything. Write a mapping that answers these questions."), faults=faults
        )
    return proposal.mapping.as_json()


def save_mapping(*, upload: Upload, document: dict[str, Any]) -> None:
    """Save a mapping in preparation, which may be incomplete."""
    changed = Upload.objects.filter(pk=upload.pk, state__in=CHANGEABLE).update(
        options={**upload.options, "mapping": document}, state=Upload.State.MAPPING, fault_count=0, counts={}
    )
    if not changed:
        raise Conflict(_("The mapping of this upload can no longer be changed."))
    UploadFault.objects.filter(upload=upload).delete()


def import_table(*, upload: Upload, user: User, document: Any, dry_run: bool = False, replace: bool = False) -> Upload:
    """Import an upload with a mapping. Raises `BadInput` if the mapping is incomplete."""
    options = {"mapping": check_mapping(document), "dry_run": dry_run, "replace": replace}
    refusal = _("The mapping of this upload can no longer be changed.")
    return repeat_import(upload=upload, user=user, states=CHANGEABLE, refusal=refusal, options=options)
