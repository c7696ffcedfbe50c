"""Downloads of artefacts (single files, or all as an uncompressed tar created while it is sent), reports and tables."""

import tarfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common.errors import Busy
from scoring.boards.base import Query
from scoring.boards.render.files import FORMATS
from scoring.boards.render.report import build_document

from .models import Evaluator, SharedReport
from .selectors.training import File, find_file, list_files
from .services.leaderboards import answer_leaderboard

CHUNK = 1 << 18
BLOCK = tarfile.BLOCKSIZE
#: Last parts of the names of files.
STEMS = {"enhanced": "by-references"}


def send_file(evaluator: Evaluator, name: str) -> FileResponse:
    """Send a file as an attachment that browsers do not open."""
    response = FileResponse(find_file(evaluator, name).open("rb"), as_attachment=True, filename=Path(name).name)
    response.headers["Content-Type"] = "application/octet-stream"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def send_tar(evaluator: Evaluator) -> StreamingHttpResponse:
    """Send all files in a folder named like the evaluator. The length is known, so browsers show progress."""
    files = [(file, find_file(evaluator, file.name)) for file in list_files(evaluator)]
    heads = [_head(evaluator, file) for file, _ in files]
    size = sum(len(head) + _padded(file.bytes) for head, (file, _) in zip(heads, files, strict=True)) + 2 * BLOCK
    response = StreamingHttpResponse(_tar(files, heads), content_type="application/x-tar")
    response.headers["Content-Length"] = str(size)
    response.headers["Content-Disposition"] = f'attachment; filename="{evaluator.slug}.tar"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _head(evaluator: Evaluator, file: File) -> bytes:
    info = tarfile.TarInfo(f"{evaluator.slug}/{file.name}")
    info.size, info.mode, info.mtime = file.bytes, 0o644, int(evaluator.created_at.timestamp())
    return info.tobuf(tarfile.PAX_FORMAT)


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _tar(files: list[tuple[File, Path]], heads: list[bytes]) -> Iterator[bytes]:
    for (file, path), head in zip(files, heads, strict=True):
        yield head
        left = file.bytes
        with path.open("rb") as content:
            while left and (chunk := content.read(min(CHUNK, left))):
                left -= len(chunk)
                yield chunk
        yield b"\0" * (_padded(file.bytes) - file.bytes + left)
    yield b"\0" * (2 * BLOCK)


def send_board(*, project: Project, query: Query, user: Any, ending: str) -> HttpResponse:
    """Return the file of a board, or 503 while the table is computed."""
    answer = answer_leaderboard(project=project, query=query, user=user)
    if answer.table is None or not answer.is_current:
        raise Busy(_("The table is being computed. Wait until its page shows it, then try again."), wait=5)
    return make_file(answer.table, ending, f"{project.slug}-{STEMS.get(query.kind, query.kind)}")


def make_file(table: Mapping[str, Any], ending: str, stem: str) -> HttpResponse:
    """Return a table as CSV, JSON or LaTeX."""
    write, media_type = FORMATS[ending]
    response = HttpResponse(write(table), content_type=media_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{stem}.{ending}"'
    return response


def send_report(row: SharedReport, name: str) -> HttpResponse:
    """Return the PDF of a report."""
    response = HttpResponse(_write_report(row.digest), content_type="application/pdf")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}-{row.created_at:%Y-%m-%d}.pdf"'
    return response


@lru_cache(maxsize=16)
def _write_report(digest: str) -> bytes:
    """Write the PDF of a report, which never changes, in about a second."""
    from scoring.boards.render.pdf import write_pdf

    row = SharedReport.objects.get(digest=digest)
    return write_pdf(build_document(row.content), row.created_at)
