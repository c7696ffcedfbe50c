"""The job `index`: store what was added to a corpus, build its index, and replace the previous one. Can run repeatedly
and in several workers; the newest content wins."""

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
from ..services.places import index_path, lock_index, remove_files
from . import elastic
from .parts import read_stored_pairs, store_part
from .work import Work


def run(context: RunContext, corpus: int, part: int | None = None, again: bool = False) -> dict[str, Any]:
    """`part`: a new part to store first; `again`: rebuild even if nothing has changed."""
    row = Corpus.objects.filter(pk=corpus).first()
    if row is None:
        raise Conflict(_("The corpus has been deleted."))
    Corpus.objects.filter(pk=corpus).update(run=context.run)
    Corpus.objects.filter(pk=corpus, state=Corpus.State.FAILED).update(state=Corpus.State.BUILDING, error="")
    try:
        result = update_index(row, context, part=part, again=again)
    finally:
        if not Corpus.objects.filter(pk=corpus).exists():
            remove_files(corpus)
    return {**result, "url": f"/projects/{context.project.slug}/corpora/{row.name}/"}


def update_index(corpus: Corpus, work: Work, *, part: int | None = None, again: bool = False) -> dict[str, Any]:
    """Store the part, build the index and publish it; for runs and for commands without one."""
    if part is not None:
        row = CorpusPart.objects.select_related("project").filter(pk=part, corpus=corpus).first()
        if row is None:
            raise Conflict(_("The corpus has been deleted."))
        store_part(row, work)
    corpus.refresh_from_db()
    if not corpus.revision:
        raise BadInput(_("The corpus is empty. Add a file or rows of the project first."))
    is_loaded = True
    try:
        build_embedded(corpus, work, again=again)
        if elastic_service.is_used():
            is_loaded = elastic.load(corpus, work, again=again)
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
    if not is_loaded:
        result["elasticsearch"] = _("will be updated later")
    done = corpus.parts.filter(pk=part).values("rows", "added", "blank").first() if part is not None else None
    if done is not None:
        result |= {"read": done["rows"], "added": done["added"], "left_out": done["blank"]}
    return result


# ---- the embedded index -------------------------------------------------------------------------------------


def build_embedded(corpus: Corpus, work: Work, *, again: bool = False) -> None:
    """Add missing parts to the index, or build it from all parts. It replaces the previous one atomically, so that a
    killed worker leaves that unchanged."""
    from ..index import append, build

    began = time.monotonic()
    with lock_index(corpus.pk, lambda: work.progress(0, None, "pairs", "Waiting for another run")):
        corpus.refresh_from_db()
        revision, place = corpus.revision, index_path(corpus.pk)
        indexed = 0 if again or not (place / "manifest.json").exists() else corpus.embedded_revision
        if indexed >= revision:
            return
        total = _count_rows(corpus)
        done = total - _count_rows(corpus, after=indexed)

        def progress(rows: int, _: int) -> None:
            work.progress(done + rows, total, "pairs", "Indexing")

        progress(0, 0)
        if indexed:
            built = append(place, read_stored_pairs(corpus, after=indexed), progress=progress)
        else:
            pairs = read_stored_pairs(corpus)
            built = build(pairs, place, language=corpus.language, tokenizer=corpus.tokenizer, progress=progress)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        seconds = time.monotonic() - began
        publish(corpus, revision, count=built.count, rows=total, size=size, version=built.version, seconds=seconds)
    handles.forget(corpus.pk)
    work.log(f"{built.count:,} different pairs; {total - built.count:,} duplicates.")
    if built.without_tokens:
        work.log(f"{built.without_tokens:,} queries have no words to compare; only word searches find them.")


def _count_rows(corpus: Corpus, after: int = 0) -> int:
    parts = corpus.parts.filter(state=CorpusPart.State.STORED, revision__gt=after)
    return sum(parts.values_list("rows", flat=True))


def publish(corpus: Corpus, revision: int, *, count: int, rows: int, size: int, version: str, seconds: float) -> None:
    """Publish a finished index: from now on it answers."""
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
