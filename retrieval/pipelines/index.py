"""The job `index`: take in what was added to a corpus, build the index that answers for the installation, and let it
take the place of the one before. It may run any number of times, in several workers; the newest content wins."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput, Conflict, Unavailable
from evalapp.common.runner import RunContext

from ..index.errors import CorpusError, IndexUnavailable
from ..models import Corpus, CorpusPart
from ..services import elastic as elastic_service
from ..services import handles
from ..services.places import alone, index_path, remove_files
from . import elastic
from .parts import stored_pairs, take_in
from .work import Work


def run(context: RunContext, corpus: int, part: int | None = None, again: bool = False) -> dict[str, Any]:
    """`part`: what is to be taken in first; `again`: build anew even if nothing has changed."""
    row = Corpus.objects.filter(pk=corpus).first()
    if row is None:
        raise Conflict(_("The corpus has been deleted."))
    Corpus.objects.filter(pk=corpus).update(run=context.run)
    Corpus.objects.filter(pk=corpus, state=Corpus.State.FAILED).update(state=Corpus.State.BUILDING, error="")
    try:
        found = bring_up(row, context, part=part, again=again)
    finally:
        if not Corpus.objects.filter(pk=corpus).exists():
            remove_files(corpus)
    return {**found, "url": f"/projects/{context.project.slug}/corpora/{row.name}/"}


def bring_up(corpus: Corpus, work: Work, *, part: int | None = None, again: bool = False) -> dict[str, Any]:
    """Take in, build, publish; the same for a run and for a command without one."""
    if part is not None:
        found = CorpusPart.objects.select_related("project").filter(pk=part, corpus=corpus).first()
        if found is None:
            raise Conflict(_("The corpus has been deleted."))
        take_in(found, work)
    corpus.refresh_from_db()
    if not corpus.revision:
        raise BadInput(_("The corpus is empty. Add a file or rows of the project first."))
    told = True
    try:
        build_embedded(corpus, work, again=again)
        if elastic_service.is_used():
            told = elastic.load(corpus, work, again=again)
    except Corpus.DoesNotExist as error:
        raise Conflict(_("The corpus has been deleted.")) from error
    except FileNotFoundError as error:
        if Corpus.objects.filter(pk=corpus.pk).exists():
            text = _("A file of the corpus is missing (%(file)s). Restore a backup or delete the corpus.")
            text %= {"file": error.filename}
            raise Conflict(text) from error
        raise Conflict(_("The corpus has been deleted.")) from error
    except CorpusError as error:
        text = _("The stored pairs are damaged: %(error)s. Delete the corpus and add its files again.")
        raise BadInput(text % {"error": error}) from error
    except IndexUnavailable as error:
        raise Unavailable(error.why) from error
    corpus.refresh_from_db()
    result = {"corpus": corpus.name, "pairs": corpus.count, "duplicates": corpus.duplicates, "bytes": corpus.bytes}
    if not told:
        result["elasticsearch"] = "is told later"
    done = corpus.parts.filter(pk=part).values("rows", "added", "blank").first() if part is not None else None
    if done is not None:
        result |= {"read": done["rows"], "added": done["added"], "left_out": done["blank"]}
    return result


# ---- the embedded index -------------------------------------------------------------------------------------


def build_embedded(corpus: Corpus, work: Work, *, again: bool = False) -> None:
    """Extend the index by the parts it does not hold yet, or make it from all of them. It takes the place of the one
    before in one step; a worker that is killed leaves that one as it was."""
    from ..index import append, build

    began = time.monotonic()
    with alone(corpus.pk, lambda: work.progress(0, None, "pairs", "Waiting for another run")):
        corpus.refresh_from_db()
        revision, place = corpus.revision, index_path(corpus.pk)
        there = 0 if again or not (place / "manifest.json").exists() else corpus.embedded_revision
        if there >= revision:
            return
        total = _rows_of(corpus)
        done = total - _rows_of(corpus, after=there)

        def progress(rows: int, _: int) -> None:
            work.progress(done + rows, total, "pairs", "Indexing")

        progress(0, 0)
        if there:
            built = append(place, stored_pairs(corpus, after=there), progress=progress)
        else:
            pairs = stored_pairs(corpus)
            built = build(pairs, place, language=corpus.language, tokenizer=corpus.tokenizer, progress=progress)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        seconds = time.monotonic() - began
        publish(corpus, revision, count=built.count, rows=total, size=size, version=built.version, seconds=seconds)
    handles.forget(corpus.pk)
    work.log(f"{built.count:,} different pairs; {total - built.count:,} stood there already.")
    if built.without_tokens:
        work.log(f"{built.without_tokens:,} queries have nothing to compare; they are found by words alone.")


def _rows_of(corpus: Corpus, after: int = 0) -> int:
    parts = corpus.parts.filter(state=CorpusPart.State.STORED, revision__gt=after)
    return sum(parts.values_list("rows", flat=True))


def publish(corpus: Corpus, revision: int, *, count: int, rows: int, size: int, version: str, seconds: float) -> None:
    """The index is there: what people and searches are told of it from now on."""
    facts = {
        "embedded_revision": revision, "state": Corpus.State.READY, "error": "", "count": count,
        "duplicates": rows - count, "bytes": size, "version": version[:100], "seconds": seconds,
        "indexed_at": timezone.now(),
    }  # fmt: skip
    with transaction.atomic():
        old = Corpus.objects.select_for_update().filter(pk=corpus.pk).first()
        if old is None:
            raise Conflict(_("The corpus has been deleted."))
        Corpus.objects.filter(pk=corpus.pk).update(**facts)
        fresh = corpus.parts.filter(state=CorpusPart.State.STORED, added=None)
        if fresh.count() == 1:
            fresh.update(added=count - old.count)
