"""The rows of a project as pairs: what was said, and what was answered. Read as a stream, in the order of the rows, so
that the same rows give the same corpus."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from annotation.models import CorpusPair, Dialogue, Reference
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project

from ..models import CorpusPart

#: (query, response, meta)
Pair = tuple[str, str, dict[str, Any]]

CHUNK = 2000


def pairs_of(project: Project, kind: str) -> Iterator[Pair]:
    return {
        CorpusPart.Kind.DIALOGUES.value: dialogue_pairs,
        CorpusPart.Kind.CORPUS.value: corpus_pairs,
        CorpusPart.Kind.ITEMS.value: item_pairs,
    }[kind](project)


def count_rows(project: Project, kind: str) -> int:
    """How many rows are looked at: dialogues, rows of corpus.jsonl, references."""
    if kind == CorpusPart.Kind.DIALOGUES:
        return Dialogue.objects.filter(project=project).count()
    if kind == CorpusPart.Kind.CORPUS:
        return CorpusPair.objects.filter(project=project).count()
    return Reference.objects.filter(item__project=project, set__name=ORIGINAL).count()


def dialogue_pairs(project: Project) -> Iterator[Pair]:
    """Every turn that has a turn after it, with that turn."""
    rows = Dialogue.objects.filter(project=project).order_by("pk").values_list("key", "turns")
    for key, turns in rows.iterator(CHUNK):
        for query, response in pairwise(turns):
            yield query, response, {"dialogue": key}


def corpus_pairs(project: Project) -> Iterator[Pair]:
    """The rows of corpus.jsonl as they were uploaded."""
    rows = CorpusPair.objects.filter(project=project).order_by("position").values_list("query", "response", "meta")
    yield from rows.iterator(CHUNK)


def item_pairs(project: Project) -> Iterator[Pair]:
    """The last turn of an item's context (its source, where it has none) with each of its original references."""
    rows = Reference.objects.filter(item__project=project, set__name=ORIGINAL).order_by("item_id", "position")
    for key, context, source, text in rows.values_list("item__key", "item__context", "item__source", "text").iterator(
        CHUNK
    ):
        yield context[-1] if context else source or "", text, {"item": key}
