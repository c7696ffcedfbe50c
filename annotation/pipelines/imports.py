"""Imports uploaded files: read and check everything into the staging file, compare it with stored rows, and store it in
one transaction. If there is any error, nothing is stored."""

import contextlib
from collections.abc import Iterable
from typing import Any

from django.db import Error as DatabaseTrouble
from django.db import IntegrityError
from django.utils import timezone

from annotation.models import Upload, UploadFault
from annotation.parsers import KINDS, Faults
from annotation.parsers.kinds import DatasetRow
from annotation.services import uploads as service
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.runner import RunCancelled, RunContext
from evalapp.translation import gettext as _
from evalapp.translation import ngettext

from . import import_checks, import_judgements, import_names, import_references, import_results, import_written
from .import_faults import Check, explain_other_content
from .import_reading import UploadReader
from .import_staging import REPLACE, Staging
from .import_store import described, promote

_ATTEMPTS = 3


def run(context: RunContext, upload: int) -> dict[str, Any]:
    """The job `import`. Idempotent: a stored upload is left alone."""
    row = Upload.objects.select_related("project").get(pk=upload)
    if row.state == Upload.State.DONE:
        # The worker that stored it may have died before cleaning up.
        service.remove_files(row)
        service.get_staging_file(row).unlink(missing_ok=True)
        return _result(row)
    if row.state == Upload.State.FAULTY:
        if "mapping" not in row.options:
            service.remove_files(row)
        service.get_staging_file(row).unlink(missing_ok=True)
        raise _faulty(row.fault_count, row.faults.all())
    if row.state == Upload.State.UNDONE:
        raise Conflict(_("The files of this upload are gone. Upload them again."))
    Upload.objects.filter(pk=row.pk).update(state=Upload.State.CHECKING, run=context.run, finished_at=None)
    row.state = Upload.State.CHECKING
    try:
        for attempt in range(1, _ATTEMPTS + 1):
            if _Import(context, row).run():
                break
            if Upload.objects.filter(pk=row.pk, state=Upload.State.DONE).exists():
                break  # stored by a worker that was believed dead, in an earlier transaction
            if attempt == _ATTEMPTS:
                raise Conflict(_("Other uploads keep changing the project. Try again later."))
            context.log("Another upload was stored meanwhile; checking again.")
    except RunCancelled:
        _leave(context, row, Upload.State.CANCELLED.value)
        raise
    except Exception:
        _leave(context, row, Upload.State.FAILED.value)
        raise
    row.refresh_from_db()
    return _result(row)


def _leave(context: RunContext, upload: Upload, state: str) -> None:
    """Mark the upload as failed; its files stay, so that it can be retried. The row stays unchanged if the database has
    failed, or if another worker has taken over."""
    with contextlib.suppress(DatabaseTrouble):
        if context.look() == "lost":
            return
        Upload.objects.filter(pk=upload.pk, state=Upload.State.CHECKING).update(state=state, finished_at=timezone.now())


def _faulty(count: int, rows: Iterable[Any]) -> BadInput:
    faults = [Fault(f.message, f.field, f.file, f.line) for f in rows]
    message = ngettext(
        "%(n)s fault was found; nothing was stored. Correct the files and upload them again.",
        "%(n)s faults were found; nothing was stored. Correct the files and upload them again.",
        count,
    )
    return BadInput(message % {"n": f"{count:,}"}, faults=faults)


def _result(upload: Upload) -> dict[str, Any]:
    url = f"/projects/{upload.project.slug}/uploads/{upload.pk}/"
    return {"upload": upload.pk, "state": upload.state, "counts": upload.counts, "ignored": upload.ignored, "url": url}


class _Import:
    """One attempt: read, check, store."""

    def __init__(self, context: RunContext, upload: Upload) -> None:
        self.context = context
        self.upload = upload
        self.project = upload.project
        self.options = upload.options
        self.faults = Faults()
        self.reader = UploadReader(context, upload, self.faults)

    def run(self) -> bool:
        """False if the project has changed between check and promotion, so that the checks must be repeated."""
        seen = service.get_uploads_state(self.project)
        staging = Staging(service.get_staging_file(self.upload))
        try:
            self.reader.read(staging)
            if self.reader.mapping is not None:  # what follows knows only the fields of the interchange format
                self.faults.names = {name: ", ".join(columns) for name, columns in self.reader.mapping.columns.items()}
            counts = self._check(staging)
            if self.faults.count:
                self._refuse(counts)
            if self.options.get("dry_run"):
                self._finish(counts, Upload.State.CHECKED.value)
                return True
            return self._store(staging, counts, seen)
        finally:
            staging.close()

    # ---- check ----------------------------------------------------------------------------------------------

    def _check(self, staging: Staging) -> dict[str, dict[str, int]]:
        reader, steps = self.reader, 0

        def tick(what: str) -> None:
            nonlocal steps
            steps += 1
            self.context.progress(steps, None, "checks", f"Checking ({what})")

        replace = bool(self.options.get("replace"))
        check = Check(self.project, staging, self.faults, replace, tick, reader.documents, reader.lost)
        if reader.mapping is not None:
            check.report_rows_once(reader.faulty)
        import_checks.duplicates(check)
        import_references.make_outputs(check, self.options.get("system_kinds", {}))
        import_checks.systems(check, self.options.get("system_kinds", {}))
        import_judgements.aspects(check, reader.dataset, reader.dataset_file)
        import_checks.items(check)
        import_checks.outputs(check)
        import_checks.dialogues(check)
        import_judgements.resolve(check)
        import_judgements.ratings(check)
        import_judgements.comparisons(check)
        import_judgements.corpus(check)
        import_written.references(check)
        import_written.attempts(check)
        import_results.check(check)
        hints = [*reader.hints, *import_names.find_hints(check.project, check.staging)]
        Upload.objects.filter(pk=self.upload.pk).update(options={**self.options, "hints": hints})
        counts = {table: row_counts for table in KINDS if (row_counts := staging.counts(table))["rows"]}
        if given := staging.value(f"SELECT count(*) FROM systems WHERE act = '{REPLACE}' AND file IS NULL"):
            # Kinds given as options also apply to systems that no file names.
            row_counts = counts.get("systems") or dict.fromkeys(("rows", "added", "same", "replaced", "faulty"), 0)
            counts["systems"] = {
                **row_counts,
                "rows": row_counts["rows"] + given,
                "replaced": row_counts["replaced"] + given,
            }
        if reader.dataset is not None:
            counts["dataset"] = self._check_description(check, reader.dataset)
        return counts

    def _check_description(self, check: Check, dataset: DatasetRow) -> dict[str, int]:
        current = {name: getattr(self.project, name) for name in dataset.fields}
        taken_in = "dataset" in self.project.meta
        changed = [name for name, value in dataset.fields.items() if current[name] != value]
        if described(self.project.meta, dataset) != self.project.meta and not changed:
            changed = ["meta"]
        aspects = check.staging.execute(
            "SELECT count(*) FROM aspects WHERE act IN ('new', 'replace') AND file IS NOT NULL"
        ).fetchone()[0]
        if changed and taken_in and not check.replace:
            file = check.staging.name(self.reader.dataset_file)
            for name in changed:
                self.faults.add(file, None, name, explain_other_content(_("The project's %(name)s", name=name)))
        elif "name" in changed:
            was, name = current["name"], dataset.fields["name"]
            self.context.log(f"dataset.json gives the project the name “{name}”; it was “{was}”.")
        same = not changed and not aspects
        return {"rows": 1, "added": int(not same and not taken_in), "same": int(same),
                "replaced": int(not same and taken_in), "faulty": 0}  # fmt: skip

    # ---- end ------------------------------------------------------------------------------------------------

    def _refuse(self, counts: dict[str, dict[str, int]]) -> None:
        self._finish(counts, Upload.State.FAULTY.value)
        raise _faulty(self.faults.count, self.faults.kept)

    def _finish(self, counts: dict[str, dict[str, int]], state: str) -> None:
        kept = sorted(self.faults.kept, key=lambda fault: (self._place(fault.file), fault.line or 0))
        UploadFault.objects.filter(upload=self.upload).delete()
        UploadFault.objects.bulk_create(
            UploadFault(upload=self.upload, file=f.file, line=f.line, field=f.field[:100], message=f.message)
            for f in kept
        )
        Upload.objects.filter(pk=self.upload.pk).update(
            state=state, counts=counts, fault_count=self.faults.count, finished_at=timezone.now()
        )
        if state == Upload.State.FAULTY and self.reader.mapping is None:
            service.remove_files(self.upload)  # with a mapping, that one can be corrected

    def _place(self, file: str) -> int:
        names = [entry["name"] for entry in self.upload.files]
        return names.index(file) if file in names else -1

    def _store(self, staging: Staging, counts: dict[str, dict[str, int]], seen: object) -> bool:
        total = sum(count["added"] + count["replaced"] for count in counts.values())

        def tick(done: int) -> None:
            self.context.progress(done, total, "rows", "Storing")

        tick(0)
        try:
            with service.lock_promotion(self.project, seen) as still_the_same:
                if not still_the_same:
                    return False
                self.context.make_sure()
                promote(self.upload, staging, self.reader.dataset, counts, tick, self.reader.documents)
                tick(total)
                audit.record(
                    verb="upload.done", project=self.project, actor=self.context.user, object=self.upload, counts=counts
                )
        except IntegrityError as error:
            raise Conflict(
                _("The project changed while the upload was being stored, so nothing was stored. Upload it again.")
            ) from error
        service.remove_files(self.upload)
        return True
