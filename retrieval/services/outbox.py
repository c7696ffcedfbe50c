"""What Elasticsearch has to be told. Rows are written in the transaction that changes a corpus; pipelines take them out
once they are done, however long the server was away."""

from __future__ import annotations

from django.db.models import F
from django.utils import timezone

from ..models import Corpus, OutboxRow
from . import elastic


def note_change(corpus: Corpus) -> None:
    """In the transaction that gave the corpus its new revision. One row is enough: the newest revision counts."""
    if not elastic.is_used():
        return
    OutboxRow.objects.filter(corpus=corpus.pk, action=OutboxRow.Action.LOAD).delete()
    OutboxRow.objects.create(
        corpus=corpus.pk, action=OutboxRow.Action.LOAD, name=elastic.name_of(corpus), revision=corpus.revision
    )


def note_deletion(corpus: Corpus) -> None:
    """In the transaction that deletes the corpus."""
    OutboxRow.objects.filter(corpus=corpus.pk).delete()
    if corpus.elastic_revision or elastic.is_used():
        OutboxRow.objects.create(corpus=corpus.pk, action=OutboxRow.Action.DELETE, name=elastic.name_of(corpus))


def has_change(corpus_id: int, revision: int) -> bool:
    """Whether this content of the corpus, or one before it, has to be told."""
    rows = OutboxRow.objects.filter(corpus=corpus_id, action=OutboxRow.Action.LOAD)
    return rows.filter(revision__lte=revision).exists()


def note_done(*, corpus_id: int, action: str, revision: int) -> None:
    """Told; a row of a later revision stays."""
    OutboxRow.objects.filter(corpus=corpus_id, action=action, revision__lte=revision).delete()


def note_failure(*, corpus_id: int, action: str, why: str) -> None:
    OutboxRow.objects.filter(corpus=corpus_id, action=action).update(
        attempts=F("attempts") + 1, tried_at=timezone.now(), error=why[:2000]
    )
