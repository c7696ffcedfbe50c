"""Stores a part of a corpus: checks a received file, or reads rows of a project, and writes the pairs to a file. A
faulty row rejects the whole file."""

import hashlib
import os
from collections.abc import Iterator
from typing import IO, Any

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from annotation.parsers import KINDS, Faults, FileName, Limits, StopReading, name_file, open_plain, read_rows
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Conflict, Fault

from ..models import Corpus, CorpusPart
from ..selectors.derived import count_rows, read_pairs
from ..services import outbox
from ..services.places import get_part_path, get_raw_path
from .work import Work

#: The number of rows between reports of progress, which may stop the work.
STEP = 2000

Pair = tuple[str, str, dict[str, Any]]


def store_part(part: CorpusPart, work: Work) -> None:
    """Check and store the part. Idempotent; an interrupted one starts over."""
    if part.state == CorpusPart.State.STORED:
        return
    if part.state == CorpusPart.State.REFUSED:
        raise Conflict(_("%(file)s was refused. Correct the file and add it again.") % {"file": part.title})
    faults = Faults()
    rows, digest = _write(part, faults, work)
    if not faults.count and not rows:
        faults.add(part.title, None, "", _("It has no pairs. Write rows with query and response."))
    if faults.count:
        _refuse(part, faults)
    size = get_part_path(part).stat().st_size
    with transaction.atomic():
        corpus = Corpus.objects.select_for_update().filter(pk=part.corpus_id).first()
        if corpus is None:
            raise Conflict(_("The corpus has been deleted."))
        corpus.revision = F("revision") + 1
        corpus.save(update_fields=["revision"])
        corpus.refresh_from_db(fields=["revision"])
        changed = CorpusPart.objects.filter(pk=part.pk, state=CorpusPart.State.WAITING).update(
            state=CorpusPart.State.STORED, revision=corpus.revision, rows=rows, blank=part.blank, bytes=size,
            sha256=digest,
        )  # fmt: skip
        if not changed:
            raise Conflict(_("Another worker has added it in the meantime."))
        outbox.note_change(corpus)
    get_raw_path(part).unlink(missing_ok=True)
    part.refresh_from_db()


def _refuse(part: CorpusPart, faults: Faults) -> None:
    rows = [Fault(fault.message, fault.field, fault.file, fault.line) for fault in faults.kept]
    CorpusPart.objects.filter(pk=part.pk).update(
        state=CorpusPart.State.REFUSED, fault_count=faults.count, faults=[fault.as_dict() for fault in rows]
    )
    for path in (get_raw_path(part), get_part_path(part)):
        path.unlink(missing_ok=True)
    more = _("and %(count)s more") % {"count": f"{faults.count - 1:,}"} if faults.count > 1 else ""
    raise BadInput(" ".join(filter(None, [_("Nothing was added."), str(rows[0]), more])), faults=rows)


def _write(part: CorpusPart, faults: Faults, work: Work) -> tuple[int, str]:
    """Write the checked pairs to their file, atomically. Returns their number and hash."""
    target = get_part_path(part)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(f".writing-{os.getpid()}")
    rows, digest = 0, hashlib.sha256()
    pairs = _file_pairs(part, faults, work) if part.kind == CorpusPart.Kind.FILE else _project_pairs(part, work)
    try:
        with temporary.open("wb", buffering=1 << 20) as file:
            for query, response, meta in pairs:
                if faults.count:
                    continue  # look for further faults only
                row = {"query": query, "response": response, **({"meta": meta} if meta else {})}
                line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
                file.write(line)
                digest.update(line)
                rows += 1
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return rows, digest.hexdigest()


# ---- where pairs come from ----------------------------------------------------------------------------------


def _file_pairs(part: CorpusPart, faults: Faults, work: Work) -> Iterator[Pair]:
    path = get_raw_path(part)
    limits = Limits(settings.MAX_ROW_BYTES, settings.MAX_ROWS).for_file(path.stat().st_size)
    name = name_file(part.title, "corpus")
    assert name is not None  # a kind is given
    try:
        with path.open("rb") as raw:
            yield from _checked(raw, name, limits, faults, work, path.stat().st_size)
    except FileNotFoundError as error:
        raise Conflict(_("The file %(file)s is missing. Add it again.") % {"file": part.title}) from error
    except StopReading as error:
        faults.add(part.title, error.line, "", error.message)


def _checked(raw: IO[bytes], name: FileName, limits: Limits, faults: Faults, work: Work, size: int) -> Iterator[Pair]:
    at, title = 0, name.name

    def report(line: int | None, field: str, message: str) -> None:
        faults.add(title, line, field, message)

    def bad(field: str, message: str) -> None:
        report(at, field, message)

    plain = open_plain(raw, named_gzip=name.zipped)
    check = KINDS["corpus"].check
    for rows, (line, row) in enumerate(read_rows(plain, name.format, limits, report)):
        at = line
        before = faults.count
        values = check(row, bad)
        if values is None or faults.count > before:
            continue
        query, response, meta = values
        for field, text in (("query", query), ("response", response)):
            if not text.strip():
                bad(field, f"{field} is empty. Leave the row out.")
        if faults.count == before:
            yield query, response, orjson.loads(meta)
        if rows % STEP == 0:
            seen = raw.tell()
            work.progress(rows, int(rows * size / seen) if seen and rows else None, "rows", "Checking")


def _project_pairs(part: CorpusPart, work: Work) -> Iterator[Pair]:
    """Pairs of a project. Those with an empty text are counted and left out."""
    if part.project is None:
        raise Conflict(_("The project has been deleted."))
    total = count_rows(part.project, part.kind)
    part.blank = 0
    facts = _facts(part, part.project)
    for number, (query, response, meta) in enumerate(read_pairs(part.project, part.kind)):
        if query.strip() and response.strip():
            # The row's own members take precedence.
            yield query, response, {**meta, **{name: text for name, text in facts.items() if not meta.get(name)}}
        else:
            part.blank += 1
        if number % STEP == 0:
            work.progress(min(number, total), total, "rows", "Reading")


def _facts(part: CorpusPart, project: Project) -> dict[str, str]:
    """Licence and source of a project's rows if they differ from those of the corpus, because rows of another origin
    were added to it before. They are then stored with each row."""
    before = part.corpus.parts.filter(pk__lt=part.pk).exclude(state=CorpusPart.State.REFUSED)
    if not before.exclude(project=project).exists():
        return {}
    facts = {
        "licence": project.licence.strip()[:500] or "not stated",
        "source": project.source.strip()[:500] or f"project {project.slug}",
    }
    return {name: text for name, text in facts.items() if text != getattr(part.corpus, name)}


def read_stored_pairs(corpus: Corpus, after: int = 0) -> Iterator[dict[str, Any]]:
    """The pairs of all parts stored after a revision, in order."""
    parts = corpus.parts.filter(state=CorpusPart.State.STORED, revision__gt=after).order_by("revision")
    for part in parts:
        with get_part_path(part).open("rb", buffering=1 << 20) as file:
            yield from map(orjson.loads, file)
