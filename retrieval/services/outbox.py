"""Pending changes for Elasticsearch. Rows are created in the transaction that changes a corpus; pipelines delete them
when the server has the change, however long it was unavailable."""

from django.db.models import F
from django.utils import timezone

from ..models import Corpus, OutboxRow
from . import elastic


def note_change(corpus: Corpus) -> None:
    """Record a new revision, in the transaction that sets it. One row per corpus is enough: the newest revision
    counts."""
    if not elastic.is_used():
        return
    OutboxRow.objects.filter(corpus=corpus.pk, action=OutboxRow.Action.LOAD).delete()
    OutboxRow.objects.create(
        corpus=corpus.pk, action=OutboxRow.Action.LOAD, name=elastic.get_alias(corpus), revision=corpus.revision
    )


def note_deletion(corpus: Corpus) -> None:
    """Record the deletion of a corpus, in the same transaction."""
    OutboxRow.objects.filter(corpus=corpus.pk).delete()
    if corpus.elastic_revision or elastic.is_used():
        OutboxRow.objects.create(corpus=corpus.pk, action=OutboxRow.Action.DELETE, name=elastic.get_alias(corpus))


def has_change(corpus_id: int, revision: int) -> bool:
    """Whether a change up to this revision is pending."""
    rows = OutboxRow.objects.filter(corpus=corpus_id, action=OutboxRow.Action.LOAD)
    return rows.filter(revision__lte=revision).exists()


def note_done(*, corpus_id: int, action: str, revision: int) -> None:
    """Delete the row of a completed change; a row of a later revision stays."""
    OutboxRow.objects.filter(corpus=corpus_id, action=action, revision__lte=revision).delete()


def note_failure(*, corpus_id: int, action: str, why: str) -> None:
    OutboxRow.objects.filter(corpus=corpus_id, action=action).update(
        attempts=F("attempts") + 1, tried_at=timezone.now(), error=why[:2000]
    )
