"""Reads uploaded files into the staging file: interchange files as they are, others by the upload's mapping."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

from annotation.mapping import Fault, Table, convert_rows, list_left_out, open_files, open_table, read_mapping
from annotation.mapping.seen import Seen
from annotation.models import Upload
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
from evalapp.common.errors import Conflict
from evalapp.common.runner import RunContext
from evalapp.translation import gettext as _

from .import_staging import FAULTY, NEW, Staging

#: The maximum number of rows and characters in memory before they are staged.
_BATCH, _HELD = 2000, 8 << 20
#: So many left-out columns are named in a hint.
_LISTED = 50
#: So many faulty rows of mapped files are remembered, so that nothing else in such a row is reported.
_MOST_FAULTY = 10_000
#: The maximum size of a file with a single object, in bytes.
_DOCUMENT = 1 << 26
#: Tables that other rows refer to.
_REFERRED = frozenset({"systems", "items", "dialogues", "outputs", "score_sets"})


class UploadReader:
    """Reads the files of an upload. Their faults go to `faults`; everything else it finds is in its attributes."""

    def __init__(self, context: RunContext, upload: Upload, faults: Faults) -> None:
        self.context = context
        self.upload = upload
        self.faults = faults
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
        self.mapping = read_mapping(upload.options["mapping"]) if "mapping" in upload.options else None
        self.converted = Seen()
        #: The first rows of mapped files that could not be converted or have a wrong value: number of the file, line.
        self.faulty: list[tuple[int, int]] = []
        self.hints: list[str] = []

    def read(self, staging: Staging) -> None:
        """Stage all rows, and record the state of the files."""
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
            if isinstance(converted, Fault):
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
            values = check(row, lambda field, message: None) if row and name.kind in _REFERRED else None
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
