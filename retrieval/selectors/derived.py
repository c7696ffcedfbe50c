"""The rows of a project as (query, response) pairs, read as a stream in the order of the rows, so that the same rows
give the same corpus."""

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


def read_pairs(project: Project, kind: str) -> Iterator[Pair]:
    return {
        CorpusPart.Kind.DIALOGUES.value: read_dialogue_pairs,
        CorpusPart.Kind.CORPUS.value: read_corpus_pairs,
        CorpusPart.Kind.ITEMS.value: read_item_pairs,
    }[kind](project)


def count_rows(project: Project, kind: str) -> int:
    """The number of rows that are read: dialogues, rows of corpus.jsonl, or references."""
    if kind == CorpusPart.Kind.DIALOGUES:
        return Dialogue.objects.filter(project=project).count()
    if kind == CorpusPart.Kind.CORPUS:
        return CorpusPair.objects.filter(project=project).count()
    return Reference.objects.filter(item__project=project, set__name=ORIGINAL).count()


def read_dialogue_pairs(project: Project) -> Iterator[Pair]:
    """Each turn except the last, with the turn after it."""
    rows = Dialogue.objects.filter(project=project).order_by("pk").values_list("key", "turns")
    for key, turns in rows.iterator(CHUNK):
        for query, response in pairwise(turns):
            yield query, response, {"dialogue": key}


def read_corpus_pairs(project: Project) -> Iterator[Pair]:
    """The rows of corpus.jsonl as they were uploaded."""
    rows = CorpusPair.objects.filter(project=project).order_by("position").values_list("query", "response", "meta")
    yield from rows.iterator(CHUNK)


def read_item_pairs(project: Project) -> Iterator[Pair]:
    """The last turn of an item's context (its source if it has none) with each of its original references."""
    rows = Reference.objects.filter(item__project=project, set__name=ORIGINAL).order_by("item_id", "position")
    for key, context, source, text in rows.values_list("item__key", "item__context", "item__source", "text").iterator(
        CHUNK
    ):
        yield context[-1] if context else source or "", text, {"item": key}
