"""Writing a project as an interchange folder: into the exports folder with an archive to download, or anywhere for
the command `dump`."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from annotation.exporters import canonical
from annotation.exporters.formats import Writer, writer
from annotation.parsers import encode_document
from annotation.selectors.data import count_rows
from annotation.services.exports import check_format, folder_of
from evalapp.accounts.models import Project
from evalapp.common.runner import RunContext


def run(context: RunContext, format: str = "jsonl") -> dict[str, Any]:
    """The job `export`. A second attempt begins anew."""
    check_format(format)
    folder = folder_of(context.run)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    total = count_rows(context.project)
    try:
        files = write_folder(
            context.project, folder, format, lambda done: context.progress(done, total, "rows", "Writing")
        )
        archive = folder / f"{context.project.slug}-{format}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            for file in files:
                context.check()
                zipped.write(folder / file["name"], f"{context.project.slug}/{file['name']}")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return {"format": format, "files": files, "archive": archive.name, "bytes": archive.stat().st_size}


def write_folder(project: Project, folder: Path, format: str, tick: Callable[[int], None]) -> list[dict[str, Any]]:
    """Write the files; returns name, rows and bytes of each, dataset.json first."""
    writers: dict[str, Writer] = {}
    done = 0
    try:
        with canonical.one_moment():
            document = encode_document(canonical.dataset_document(Project.objects.get(pk=project.pk)))
            (folder / "dataset.json").write_text(document, encoding="utf-8")
            for table, row in canonical.rows(project):
                if table not in writers:
                    writers[table] = writer(format, folder, table)
                writers[table].write(row)
                done += 1
                if done % 1000 == 0:
                    tick(done)
    finally:
        for made in writers.values():
            made.close()
    tick(done)
    first = {"name": "dataset.json", "rows": 1, "bytes": (folder / "dataset.json").stat().st_size}
    return [first] + [
        {"name": made.path.name, "rows": made.rows, "bytes": made.path.stat().st_size}
        for _, made in sorted(writers.items())
    ]
