"""Loading a corpus into Elasticsearch from its embedded index, and telling the server later what it could not be told
at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from ..index.errors import IndexUnavailable
from ..models import Corpus, OutboxRow
from ..services import elastic, handles, outbox
from ..services.corpora import start_indexing
from ..services.places import alone
from .work import Plain, Work

LOAD = OutboxRow.Action.LOAD.value
#: After so many failures in a row the next try comes later, at most after `LONGEST`.
FIRST, LONGEST = timedelta(seconds=30), timedelta(minutes=10)


def load(corpus: Corpus, work: Work, *, again: bool = False) -> bool:
    """Bring the server to the content of the embedded index. False where it cannot be reached or used now: the outbox
    keeps the change, and the embedded index answers meanwhile."""
    with alone(corpus.pk, lambda: work.progress(0, None, "pairs", "Waiting for another run")):
        corpus.refresh_from_db()
        revision, there = corpus.embedded_revision, corpus.elastic_revision
        # A row of what is there already: it was to be sent anew, and the server was away.
        again = again or (there >= revision and outbox.has_change(corpus.pk, revision))
        if there >= revision and not again:
            return True
        try:
            _send(corpus, work, again or not there)
        except IndexUnavailable as error:
            if not outbox.has_change(corpus.pk, revision):  # a command without a run asked for it
                outbox.note_change(corpus)
            outbox.note_failure(corpus_id=corpus.pk, action=LOAD, why=error.why)
            work.log(f"{error.why}. The built-in index answers; Elasticsearch is told as soon as it can be.")
            return False
        with transaction.atomic():
            Corpus.objects.filter(pk=corpus.pk).update(elastic_revision=revision)
            outbox.note_done(corpus_id=corpus.pk, action=LOAD, revision=revision)
    handles.forget(corpus.pk)
    work.log(f"Elasticsearch holds {corpus.count:,} pairs.")
    return True


def _send(corpus: Corpus, work: Work, anew: bool) -> None:
    index: Any = handles.open_embedded(corpus)
    try:
        first = 0 if anew else _count_there(corpus)
        if first:
            work.progress(first, index.count, "pairs", "Telling Elasticsearch")
            elastic.append(corpus, index.rows(first))
            if _count_there(corpus) == index.count:
                return
            # An addition that was cut off before may have left a gap below those that had come.
            work.log("Elasticsearch lacks rows of an earlier addition; all are sent anew.")

        def progress(done: int) -> None:
            work.progress(done, index.count, "pairs", "Telling Elasticsearch")

        elastic.rebuild(corpus, index.rows(), progress)
    finally:
        index.close()


def _count_there(corpus: Corpus) -> int:
    """How many rows the server holds; 0 where it holds something else, so that all are sent anew."""
    try:
        state = elastic.state_of(corpus)
    except IndexUnavailable:
        return 0  # perhaps it is gone; a server that is down says so at the next step
    fits = (state.language, state.tokenizer) == (corpus.language, corpus.tokenizer) and state.count <= corpus.count
    return int(state.count) if fits else 0


# ---- after an outage ----------------------------------------------------------------------------------------


def catch_up() -> dict[str, int]:
    """Tell the server what the outbox holds and nobody is telling it now. Asks first whether it answers at all, so
    that an outage makes no runs that fail."""
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
    """By a run, so that people see it; directly where no project can hold one."""
    corpus = Corpus.objects.select_related("run", "project", "home").filter(pk=row.corpus).first()
    if corpus is None:
        row.delete()
        return 0
    if corpus.is_waiting or not corpus.embedded_revision:
        return 0
    if start_indexing(corpus=corpus, user=None, whole=False) is None:
        return int(load(corpus, Plain()))
    return 1
