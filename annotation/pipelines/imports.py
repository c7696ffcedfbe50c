"""Imports uploaded files: read and check everything into the staging file, compare it with stored rows, and store it in
one transaction. If there is any error, nothing is stored."""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseTrouble
from django.db import IntegrityError
from django.utils import timezone

from annotation.mapping import Fault as MappedFault
from annotation.mapping import Table, convert_rows, list_left_out, open_files, open_table, read_mapping
from annotation.mapping.seen import Seen
from annotation.models import Upload, UploadFault
from annotation.parsers import (
    KINDS,
    Faults,
    FileName,
    Limits,
    StopReading,
    check_dataset,
    name_file,
    open_plain,
    read_document,
    read_rows,
)
from annotation.parsers.kinds import DatasetRow
from annotation.services import uploads as service
from annotation.services.bulk import measure_row
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.runner import RunCancelled, RunContext
from evalapp.translation import gettext as _
from evalapp.translation import ngettext

from . import (
    import_checks,
    import_judgements,
    import_names,
    import_references,
    import_results,
    import_written,
)
from .import_faults import Check, explain_other_content
from .import_staging import FAULTY, NEW, REPLACE, Staging
from .import_store import described, promote

#: The maximum number of rows and characters in memory before they are staged.
_BATCH, _HELD = 2000, 8 << 20
_ATTEMPTS = 3
#: So many left-out columns are named in a hint.
_LISTED = 50
#: So many faulty rows of mapped files are remembered, so that nothing else in such a row is reported.
_MOST_FAULTY = 10_000
#: The maximum size of a file with a single object, in bytes.
_DOCUMENT = 1 << 26
#: Tables that other rows refer to.
REFERRED = frozenset({"systems", "items", "dialogues", "outputs", "score_sets"})


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
        self.dataset: DatasetRow | None = None
        self.dataset_file: int | None = None
        #: Contents of other files with a single object, by kind.
        self.documents: dict[str, Any] = {}
        #: The first row of each table without a readable key, which other rows may refer to.
        self.lost: dict[str, str] = {}
        self.rows = 0
        self.bytes_before = 0
        self.bytes_total = sum(file["bytes"] for file in upload.files)
        self.limits = Limits(settings.MAX_ROW_BYTES, settings.MAX_ROWS, settings.MAX_UPLOAD_BYTES * 10)
        self.mapping = read_mapping(self.options["mapping"]) if "mapping" in self.options else None
        self.converted = Seen()
        #: The first rows of mapped files that could not be converted or have a wrong value: number of the file, line.
        self.faulty: list[tuple[int, int]] = []
        self.hints: list[str] = []

    def run(self) -> bool:
        """False if the project has changed between check and promotion, so that the checks must be repeated."""
        seen = service.get_uploads_state(self.project)
        staging = Staging(service.get_staging_file(self.upload))
        try:
            self._read(staging)
            if self.mapping is not None:  # what follows knows only the fields of the interchange format
                self.faults.names = {name: ", ".join(columns) for name, columns in self.mapping.columns.items()}
            counts = self._check(staging)
            if self.faults.count:
                self._refuse(counts)
            if self.options.get("dry_run"):
                self._finish(counts, Upload.State.CHECKED.value)
                return True
            return self._store(staging, counts, seen)
        finally:
            staging.close()

    # ---- read -----------------------------------------------------------------------------------------------

    def _read(self, staging: Staging) -> None:
        for index, file in enumerate(self.upload.files):
            staging.files.append(file["name"])
            path = service.get_upload_folder(self.upload) / file["stored"]
            if not path.exists():
                raise Conflict(_("The file %(name)s is gone. Upload it again.", name=file["name"]))
            before = self.rows
            with path.open("rb") as raw:
                file["sha256"] = hashlib.file_digest(raw, "sha256").hexdigest()
                raw.seek(0)
                try:
                    self._read_file(staging, raw, path, index)
                except StopReading as stop:
                    self.faults.add(file["name"], stop.line, "", stop.message)
                    self._lose(file["kind"], file["name"], stop.line)
            self.bytes_before += file["bytes"]
            if self.rows > before:
                self.context.log(f"{file['name']}: {self.rows - before:,} rows read")
        digest = hashlib.sha256("".join(sorted(f["kind"] + f["sha256"] for f in self.upload.files)).encode())
        Upload.objects.filter(pk=self.upload.pk).update(files=self.upload.files, content_hash=digest.hexdigest())

    def _read_file(self, staging: Staging, raw: Any, path: Path, index: int) -> None:
        file = self.upload.files[index]
        if file["kind"] == service.MAPPED:
            assert self.mapping is not None
            if self.mapping.shape != "lines" or len(self.upload.files) == 1:
                self._read_mapped(staging, open_table(path, file["name"], self.mapping.reading, self.limits), index)
            elif index == len(self.upload.files) - 1:  # all files together are one table
                names = [(one["name"], path.parent / one["stored"]) for one in self.upload.files]
                self._read_mapped(staging, open_files(names, self.limits), index)
            return
        name = name_file(file["name"], file["kind"])
        assert name is not None
        plain = raw if name.format == "parquet" else open_plain(raw, named_gzip=name.zipped)
        if name.kind == "dataset":
            self._read_dataset(plain, index, file["name"])
        elif name.format == "json":
            self.documents[name.kind] = read_document(plain, replace(self.limits, row_bytes=_DOCUMENT))
        else:
            self._read_table(staging, plain, raw, index, name)

    def _read_mapped(self, staging: Staging, table: Table, index: int) -> None:
        """Convert a table by the upload's mapping. Faults name the row and the column of the original."""
        assert self.mapping is not None
        label = self.upload.files[index]["name"]
        self.hints += [f"{label}: {note}" for note in table.notes]
        if left_out := [f"“{one.column}”" for one in list_left_out(table, self.mapping)]:
            listed = ", ".join(left_out[:_LISTED]) + (", …" if len(left_out) > _LISTED else "")
            self.hints.append(_("%(file)s: columns that are not imported: %(columns)s.", file=label, columns=listed))
        batches: dict[str, list[tuple[Any, ...]]] = {}
        characters, before_file = 0, self.rows
        #: The row that was checked last, and its columns with a fault: parts of a row have many columns in common.
        last, reported = None, set[str]()
        for converted in convert_rows(table, self.mapping, self.converted):
            if isinstance(converted, MappedFault):
                self.faults.add(label, converted.row, converted.column, str(converted))
                self._lose("items", label, converted.row)
                self._mark_faulty(index, converted.row)
                continue
            line, kind, row, columns = converted
            if line != last:
                last, reported = line, set()

            def bad(
                field: str, message: str, line: int = line, columns: dict[str, str] = columns,
                reported: set[str] = reported,
            ) -> None:  # fmt: skip
                column = columns.get(field) or field
                if column not in reported:
                    reported.add(column)
                    self._mark_faulty(index, line)
                    self.faults.add(label, line, table.describe_column(column), message)

            values = KINDS[kind].check(row, bad)
            if values is None:
                self._lose(kind, label, line)
                continue
            batch = batches.setdefault(kind, [])
            batch.append((index, line, FAULTY if reported else NEW, *values))
            characters += measure_row(values)
            if len(batch) >= _BATCH or characters >= _HELD:
                for name, rows in batches.items():
                    self._stage(staging, name, rows, table, before_file + table.rows_read)
                characters = 0
        for name, rows in batches.items():
            self._stage(staging, name, rows, table, before_file + table.rows_read)
        self.rows = before_file + table.rows_read

    def _read_dataset(self, plain: Any, index: int, name: str) -> None:
        if self.dataset is not None:
            self.faults.add(name, None, "", _("There is a second dataset.json in this upload. Keep one."))
        document = read_document(plain, self.limits)
        self.dataset = check_dataset(document, lambda field, text: self.faults.add(name, None, field, text))
        self.dataset_file = index

    def _read_table(self, staging: Staging, plain: Any, raw: Any, index: int, name: FileName) -> None:
        check = KINDS[name.kind].check
        faults = self.faults
        add, label = faults.add, name.name
        limits = self.limits.for_file(self.upload.files[index]["bytes"])
        line = 0

        absent: Counter[str] = Counter()

        def bad(field: str, message: str) -> None:
            add(label, line, field, message)
            absent[field] += field not in row

        def report(at: int | None, field: str, message: str) -> None:
            add(label, at, field, message)

        def lost(at: int, row: dict[str, Any]) -> None:
            """Record which row is faulty if it can be identified, so that rows that refer to it are not reported as
            well."""
            values = check(row, lambda field, message: None) if row and name.kind in REFERRED else None
            if values is None:
                self._lose(name.kind, label, at)
            else:
                batch.append((index, at, FAULTY, *values))

        batch: list[tuple[Any, ...]] = []
        characters = 0
        try:
            for line, row in read_rows(plain, name.format, limits, report, name.kind, lost):
                before = faults.count
                values = check(row, bad)
                if values is None:
                    self._lose(name.kind, label, line)
                else:
                    batch.append((index, line, NEW if faults.count == before else FAULTY, *values))
                    characters += measure_row(values)
                if len(batch) >= _BATCH or characters >= _HELD:
                    self._stage(staging, name.kind, batch, raw, self.rows + len(batch))
                    characters = 0
        finally:
            self._stage(staging, name.kind, batch, raw, self.rows + len(batch))
        if columns := [field for field, count in absent.items() if count and count == line]:
            text = _(
                "%(file)s: no row has %(columns)s. Rename the columns, or match them by a mapping: choose “your own "
                "columns” as the kind of the file, `mapping=` of project.upload, or `evalapp load --map`.",
                file=label, columns=", ".join(columns),
            )  # fmt: skip
            self.hints.append(text)

    def _mark_faulty(self, index: int, line: int | None) -> None:
        if line is not None and len(self.faulty) < _MOST_FAULTY:
            self.faulty.append((index, line))

    def _lose(self, table: str, file: str, line: int | None) -> None:
        self.lost.setdefault(table, file if line is None else f"{file}:{line}")

    def _stage(self, staging: Staging, table: str, batch: list[tuple[Any, ...]], raw: Any, rows: int) -> None:
        """Save checked rows of a table. `rows`: rows of files that have been read so far."""
        staging.insert(table, batch)
        self.rows = rows
        batch.clear()
        seen = self.bytes_before + raw.tell()
        total = int(self.rows * self.bytes_total / seen) if seen else None
        self.context.progress(self.rows, total, "rows", "Reading")

    # ---- check ----------------------------------------------------------------------------------------------

    def _check(self, staging: Staging) -> dict[str, dict[str, int]]:
        steps = 0

        def tick(what: str) -> None:
            nonlocal steps
            steps += 1
            self.context.progress(steps, None, "checks", f"Checking ({what})")

        replace = bool(self.options.get("replace"))
        check = Check(self.project, staging, self.faults, replace, tick, self.documents, self.lost)
        if self.mapping is not None:
            check.report_rows_once(self.faulty)
        import_checks.duplicates(check)
        import_references.make_outputs(check, self.options.get("system_kinds", {}))
        import_checks.systems(check, self.options.get("system_kinds", {}))
        import_judgements.aspects(check, self.dataset, self.dataset_file)
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
        hints = [*self.hints, *import_names.find_hints(check.project, check.staging)]
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
        if self.dataset is not None:
            counts["dataset"] = self._check_description(check)
        return counts

    def _check_description(self, check: Check) -> dict[str, int]:
        assert self.dataset is not None
        current = {name: getattr(self.project, name) for name in self.dataset.fields}
        taken_in = "dataset" in self.project.meta
        changed = [name for name, value in self.dataset.fields.items() if current[name] != value]
        if described(self.project.meta, self.dataset) != self.project.meta and not changed:
            changed = ["meta"]
        aspects = check.staging.execute(
            "SELECT count(*) FROM aspects WHERE act IN ('new', 'replace') AND file IS NOT NULL"
        ).fetchone()[0]
        if changed and taken_in and not check.replace:
            file = check.staging.name(self.dataset_file)
            for name in changed:
                self.faults.add(file, None, name, explain_other_content(_("The project's %(name)s", name=name)))
        elif "name" in changed:
            was, name = current["name"], self.dataset.fields["name"]
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
        if state == Upload.State.FAULTY and self.mapping is None:
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
                promote(self.upload, staging, self.dataset, counts, tick, self.documents)
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
