"""Loads corpora into Elasticsearch from their embedded indexes, and sends changes later if the server was
unavailable."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from ..index.errors import IndexUnavailable
from ..models import Corpus, OutboxRow
from ..services import elastic, handles, outbox
from ..services.corpora import start_indexing
from ..services.places import lock_index
from .work import CommandWork, Work

LOAD = OutboxRow.Action.LOAD.value
#: The time to the next try after a failure; doubled with each further one, up to `LONGEST`.
FIRST, LONGEST = timedelta(seconds=30), timedelta(minutes=10)


def load(corpus: Corpus, work: Work, *, again: bool = False) -> bool:
    """Update the server to the content of the embedded index. False if it is unavailable: the change stays in the
    outbox, and the embedded index answers."""
    with lock_index(corpus.pk, lambda: work.progress(0, None, "pairs", "Waiting for another run")):
        corpus.refresh_from_db()
        revision, loaded = corpus.embedded_revision, corpus.elastic_revision
        # A pending row for a loaded revision: a reload was requested while the server was unavailable.
        again = again or (loaded >= revision and outbox.has_change(corpus.pk, revision))
        if loaded >= revision and not again:
            return True
        try:
            _send(corpus, work, again or not loaded)
        except IndexUnavailable as error:
            if not outbox.has_change(corpus.pk, revision):  # requested by a command without a run
                outbox.note_change(corpus)
            outbox.note_failure(corpus_id=corpus.pk, action=LOAD, why=error.why)
            work.log(
                f"{error.why}. The built-in index answers; the change is sent to Elasticsearch when it is available."
            )
            return False
        with transaction.atomic():
            Corpus.objects.filter(pk=corpus.pk).update(elastic_revision=revision)
            outbox.note_done(corpus_id=corpus.pk, action=LOAD, revision=revision)
    handles.forget(corpus.pk)
    work.log(f"Elasticsearch has {corpus.count:,} pairs.")
    return True


def _send(corpus: Corpus, work: Work, whole: bool) -> None:
    index: Any = handles.open_embedded(corpus)
    try:
        first = 0 if whole else _count_loaded(corpus)
        if first:
            work.progress(first, index.count, "pairs", "Loading into Elasticsearch")
            elastic.append(corpus, index.rows(first))
            if _count_loaded(corpus) == index.count:
                return
            # An interrupted earlier addition may have left a gap.
            work.log("Elasticsearch lacks rows of an earlier addition; loading all rows.")

        def progress(done: int) -> None:
            work.progress(done, index.count, "pairs", "Loading into Elasticsearch")

        elastic.rebuild(corpus, index.rows(), progress)
    finally:
        index.close()


def _count_loaded(corpus: Corpus) -> int:
    """The number of rows on the server; 0 if it has other content, so that all rows are loaded."""
    try:
        state = elastic.read_state(corpus)
    except IndexUnavailable:
        return 0  # the index may be gone; an unavailable server fails in the next step
    fits = (state.language, state.tokenizer) == (corpus.language, corpus.tokenizer) and state.count <= corpus.count
    return int(state.count) if fits else 0


# ---- after an outage ----------------------------------------------------------------------------------------


def catch_up() -> dict[str, int]:
    """Send pending changes that no run is sending. Checks first whether the server answers, so that an outage creates
    no failing runs."""
    done = {"loads": 0, "deletions": 0, "waiting": OutboxRow.objects.count()}
    if not done["waiting"] or not elastic.is_used():
        return done
    due = [row for row in OutboxRow.objects.order_by("created_at") if _is_due(row)]
    if not due:
        return done
    health = elastic.health()
    for row in due:
        if not health.ok:
            outbox.note_failure(corpus_id=row.corpus, action=row.action, why=health.message)
        elif row.action == OutboxRow.Action.DELETE:
            done["deletions"] += _drop(row)
        else:
            done["loads"] += _load_later(row)
    return {**done, "waiting": OutboxRow.objects.count()}


def _is_due(row: OutboxRow) -> bool:
    if row.tried_at is None:
        return True
    return timezone.now() - row.tried_at >= min(FIRST * 2 ** min(row.attempts - 1, 10), LONGEST)


def _drop(row: OutboxRow) -> int:
    try:
        elastic.drop(row.name)
    except IndexUnavailable as error:
        outbox.note_failure(corpus_id=row.corpus, action=row.action, why=error.why)
        return 0
    row.delete()
    return 1


def _load_later(row: OutboxRow) -> int:
    """Load by a run, which users can see; directly if there is no project for a run."""
    corpus = Corpus.objects.select_related("run", "project", "home").filter(pk=row.corpus).first()
    if corpus is None:
        row.delete()
        return 0
    if corpus.is_waiting or not corpus.embedded_revision:
        return 0
    if start_indexing(corpus=corpus, user=None, whole=False) is None:
        return int(load(corpus, CommandWork()))
    return 1
