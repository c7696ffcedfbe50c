"""Receives files, queues imports, stores checked uploads, undoes and discards. The import itself is a pipeline."""

import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.mapping import WrongMapping, read_mapping
from annotation.models import Item, Upload
from annotation.parsers import KINDS, is_derived, name_file, shorten_name
from annotation.parsers.kinds import SYSTEM_KINDS
from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotThere, TooLarge
from evalapp.common.models import Run
from evalapp.common.params import param
from evalapp.common.queue import enqueue_run
from evalapp.common.room import check_room

from .exports import remove_drafts

_ORDER = ("dataset", *KINDS, "leaderboard")
#: The kind of files that are converted by a mapping.
MAPPED = "table"
MAX_FILES = 100


@dataclass
class Incoming:
    """An uploaded file: its name, and its bytes in chunks or the path where it is."""

    name: str
    chunks: Iterable[bytes] = ()
    path: Path | None = None


def get_upload_folder(upload: Upload) -> Path:
    return settings.UPLOADS_DIR / str(upload.pk)


def remove_files(upload: Upload) -> None:
    shutil.rmtree(get_upload_folder(upload), ignore_errors=True)


def get_staging_file(upload: Upload) -> Path:
    """The SQLite database in which an import checks the rows."""
    return settings.STAGING_DIR / f"upload-{upload.pk}.sqlite3"


def give_up_import(run: Run) -> None:
    """Clean up after an import whose pipeline ended without reporting. Files stay, so that it can be retried."""
    state = Upload.State.FAILED if run.state == Run.State.FAILED else Upload.State.CANCELLED
    for upload in Upload.objects.filter(run=run, state__in=[Upload.State.RECEIVED, Upload.State.CHECKING]):
        Upload.objects.filter(pk=upload.pk, state=upload.state).update(state=state.value, finished_at=timezone.now())
        get_staging_file(upload).unlink(missing_ok=True)


def clear_project(*, project: Project) -> None:
    """Prepare the deletion of a project: delete files of uploads and exports, and mark items as not judged, so that the
    triggers do not check them again for each deleted rating."""
    Item.objects.filter(project=project, judged=True).update(judged=False)
    for pk in Upload.objects.filter(project=project).values_list("pk", flat=True):
        shutil.rmtree(settings.UPLOADS_DIR / str(pk), ignore_errors=True)
    for pk in Run.objects.filter(project=project, kind="export").values_list("pk", flat=True):
        shutil.rmtree(settings.EXPORTS_DIR / str(pk), ignore_errors=True)
        remove_drafts(pk)


def check_system_kinds(kinds: dict[str, str]) -> None:
    wrong = sorted({kind for kind in kinds.values() if kind not in SYSTEM_KINDS})
    if wrong:
        text = _("“%(name)s” is not a kind of system. Use one of: %(kinds)s.") % {
            "name": wrong[0],
            "kinds": ", ".join(SYSTEM_KINDS),
        }
        raise BadInput.for_field("system_kinds", text)


def check_mapping(mapping: dict[str, Any]) -> dict[str, Any]:
    """The mapping as it is stored with an upload."""
    try:
        return read_mapping(mapping).as_json()
    except WrongMapping as wrong:
        faults = [Fault(fault.message, fault.member) for fault in wrong.faults]
        raise BadInput(_("The mapping has faults."), faults=faults) from wrong


def receive_upload(
    *,
    project: Project,
    user: User | None,
    files: Iterable[Incoming],
    kind: str = "",
    dry_run: bool = False,
    replace: bool = False,
    system_kinds: dict[str, str] | None = None,
    mapping: dict[str, Any] | None = None,
    send: bool = True,
) -> Upload:
    """Save the files and queue their import. Files with unknown names are listed as ignored; at least one must be
    known. With a `mapping` all files are tables of any name that it converts."""
    if kind and kind not in _ORDER:
        raise BadInput(
            _("There is no kind “%(name)s”. Use one of: %(kinds)s.") % {"name": kind, "kinds": ", ".join(_ORDER)}
        )
    check_system_kinds(system_kinds or {})
    check_room()
    options = {"dry_run": dry_run, "replace": replace, "system_kinds": system_kinds or {}}
    if mapping is not None:
        options["mapping"] = check_mapping(mapping)
    # Create the row last, with its run, so that a failure leaves no upload waiting forever.
    draft = settings.UPLOADS_DIR / f"incoming-{uuid4().hex}"
    upload = Upload(project=project, options=options, created_by=user if getattr(user, "pk", None) else None)
    try:
        save_files(upload, draft, files, kind)
        with transaction.atomic():
            upload.save()
            shutil.rmtree(get_upload_folder(upload), ignore_errors=True)
            draft.rename(get_upload_folder(upload))
            _enqueue_import(upload, user, send)
            audit.record(verb="upload.received", project=project, actor=user, object=upload, **options)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        if upload.pk is not None:
            remove_files(upload)
        raise
    return upload


def save_files(upload: Upload, folder: Path, files: Iterable[Incoming], kind: str = "") -> None:
    """Save files in `folder` and list them in the upload: those of the interchange format, or with a mapping (stated,
    or to be stated) tables of any name."""
    folder.mkdir(parents=True)
    entries: list[dict[str, Any]] = []
    left = settings.MAX_UPLOAD_BYTES
    for number, file in enumerate(files):
        if number >= MAX_FILES:
            raise BadInput(_("An upload can have at most %(n)d files.") % {"n": MAX_FILES})
        is_mapped = "mapping" in upload.options or upload.state == Upload.State.MAPPING
        name = None if is_mapped else name_file(file.name, kind)
        if name is None and not is_mapped and is_derived(file.name):
            continue
        if name is None and not is_mapped:
            label = Path(file.name).name[:200]
            upload.ignored.append(_("%(file)s: not a file of the interchange format") % {"file": label})
            continue
        target = folder / f"{number:03d}"
        size = save_file(file, target, left)
        left -= size
        if left < 0:
            raise TooLarge(explain_size())
        label = shorten_name(file.name.replace("\\", "/") if name is None else name.name)
        named = MAPPED if name is None else name.kind
        entries.append({"name": label, "kind": named, "bytes": size, "sha256": "", "stored": target.name})
    if not entries:
        message = _(
            "None of the files has a name of the interchange format. Name them dataset.json, items.jsonl, outputs.csv, "
            "ratings.tsv.gz and so on, or state the kind."
        )
        raise BadInput(message, faults=[Fault(text) for text in upload.ignored])
    order = (*_ORDER, MAPPED)
    upload.files = sorted(entries, key=lambda entry: (order.index(entry["kind"]), entry["name"]))
    names = [entry["name"] for entry in upload.files]
    several = gettext_noop("%(file)s and %(n)s more") % {"file": names[0], "n": len(names) - 1}
    title = names[0] if len(names) == 1 else several
    upload.title = title[:200]


def explain_size() -> str:
    message = _("An upload can have at most %(n)s MB. Split it, compress it with gzip, or raise MAX_UPLOAD_MB.")
    return message % {"n": f"{settings.MAX_UPLOAD_BYTES // 1_000_000:,}"}


def save_file(file: Incoming, target: Path, limit: int) -> int:
    """Save a file, as a link to its path if it has one; return its size. Raises TooLarge beyond `limit` bytes."""
    if file.path is not None:
        target.symlink_to(file.path.resolve(strict=True))
        return file.path.stat().st_size
    size = 0
    with target.open("xb") as saved:
        for chunk in file.chunks:
            size += len(chunk)
            if size > limit:
                raise TooLarge(explain_size())
            saved.write(chunk)
    return size


def _enqueue_import(upload: Upload, user: User | None, send: bool = True) -> None:
    title = gettext_noop("Check %(files)s") if upload.options["dry_run"] else gettext_noop("Import %(files)s")
    upload.run = enqueue_run(
        kind="import",
        project=upload.project,
        user=user,
        params={"upload": upload.pk},
        title=title % {"files": upload.title},
        send=send,
    )
    upload.save(update_fields=["run"])


def repeat_import(
    *, upload: Upload, user: User, states: Collection[object], refusal: str, options: dict[str, Any]
) -> Upload:
    """Queue the import of files that are saved already, with other options. Raises `Conflict` with `refusal` if the
    upload is in none of the `states`."""
    with transaction.atomic():
        changed = Upload.objects.filter(pk=upload.pk, state__in=states).update(
            state=Upload.State.RECEIVED, options={**upload.options, **options}, finished_at=None
        )
        if not changed:
            raise Conflict(refusal)
        upload.refresh_from_db()
        _enqueue_import(upload, user)
    return upload


def store_checked(*, upload: Upload, user: User) -> Upload:
    """After a dry run without errors: import the same files and store them."""
    refusal = _("Only a checked upload can be stored.")
    return repeat_import(
        upload=upload, user=user, states=[Upload.State.CHECKED], refusal=refusal, options={"dry_run": False}
    )


@dataclass(frozen=True)
class ImportOptions:
    """Parameters of storing a checked upload."""

    upload: int = param(
        help="Number of an upload that was checked (`dry_run`). To send files, post them to `uploads/`.",
        low=1,
        high=2**63 - 1,
        needed="Give the number of a checked upload. To send files, post them to uploads/.",
    )


def import_checked(*, project: Project, user: User, options: ImportOptions) -> Run:
    """Store a checked upload, requested through the API."""
    upload = Upload.objects.filter(project=project, pk=options.upload).first()
    if upload is None:
        raise NotThere(_("There is no upload %(number)d in this project.") % {"number": options.upload})
    stored = store_checked(upload=upload, user=user)
    assert stored.run is not None
    return stored.run


# ---- one promotion at a time ------------------------------------------------------------------------------


def get_uploads_state(project: Project) -> tuple[Any, int]:
    """A value that changes whenever an upload of the project is stored or undone."""
    rows = Upload.objects.filter(project=project, state__in=[Upload.State.DONE, Upload.State.UNDONE])
    return rows.aggregate(last=Max("finished_at"))["last"], rows.count()


@contextmanager
def lock_promotion(project: Project, seen: object, *, alone: bool = False) -> Iterator[bool]:
    """A transaction without other imports or undos of the project; yields whether its uploads are still as `seen`.
    Annotators can continue to judge unless `alone`, which deleting judgements requires."""
    with transaction.atomic():
        if connection.features.has_select_for_update:
            Project.objects.select_for_update(no_key=not alone).get(pk=project.pk)
        yield get_uploads_state(project) == seen
