"""Reading what an evaluator needs of a project, in chunks of items, so that memory stays flat in the size of the
project. Nothing is scored or written here."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import BigIntegerField, OuterRef, Subquery, Value

from annotation.models import Item, Output, Reference, ReferenceSet, System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import NotThere

from ..models import Score, ScoreSet

if TYPE_CHECKING:
    from scoring.ml import Record

ITEMS_PER_CHUNK = 400


@dataclass(slots=True)
class Input:
    """One output as a record of the library, with the numbers of its rows; `known` is the hash that its stored score
    was computed from, where there is one."""

    output: int
    step: int | None
    record: Record
    known: int | None


def get_reference_set(project: Project, name: str) -> ReferenceSet:
    """The named set; the original one may be empty and then need not exist as a row."""
    found = ReferenceSet.objects.filter(project=project, name=name).first()
    if found is None and name != ORIGINAL:
        names = ", ".join(ReferenceSet.objects.filter(project=project).order_by("name").values_list("name", flat=True))
        raise NotThere(f"There is no reference set “{name}” in {project.slug}. There are: {names or ORIGINAL}.")
    return found or ReferenceSet(project=project, name=name)


def count_outputs(project: Project) -> int:
    return Output.objects.filter(project=project).count()


def groups_of_items(project: Project) -> dict[str, str]:
    """Item -> the group that it is in now, "" where it has none."""
    return dict(Item.objects.filter(project=project).order_by().values_list("key", "group").iterator(chunk_size=20_000))


def contents_of_items(project: Project, *, since: datetime | None = None) -> list[tuple[str, str, str]]:
    """Item, the group that it is in now, and the hash of what it is, as records of it read. With `since` of the items
    only whose upload was taken in after that."""
    from scoring.ml.training.record import hash_content

    items = Item.objects.filter(project=project)
    if since is not None:
        items = items.filter(upload__finished_at__gt=since)
    rows = items.order_by().values_list("key", "group", "context", "source")
    return [
        (key, group, hash_content([str(turn) for turn in turns], source, key))
        for key, group, turns, source in rows.iterator(chunk_size=5_000)
    ]


def iterate_inputs(
    project: Project,
    *,
    references: ReferenceSet | None,
    only: tuple[int, int | None] | None = None,
    known: ScoreSet | None = None,
    items: int = ITEMS_PER_CHUNK,
) -> Iterator[list[Input]]:
    """All outputs (or those of `only` one system at one step) with context, source and references, some items at a
    time; with `known` also what the scores of that set were computed from."""
    from scoring.ml import Record

    outputs = Output.objects.filter(project=project).order_by("item", "pk")
    if only is not None:
        outputs = outputs.filter(system=only[0], step=only[1])
    hashes: Any = Value(None, BigIntegerField())
    if known is not None and known.scores.exists():
        # A query inside the query looks each one up by the index on (set, output). A join may read the whole table of
        # scores for every chunk, and thousands of numbers in a condition cost more than the texts.
        hashes = Subquery(Score.objects.filter(score_set=known.pk, output=OuterRef("pk")).values("input_hash"))
    names = dict(System.objects.filter(project=project).values_list("pk", "name"))
    last = 0
    while True:
        chunk = list(
            Item.objects.filter(project=project, pk__gt=last)
            .order_by("pk")
            .values_list("pk", "key", "context", "source", "group")[:items]
        )
        if not chunk:
            return
        first, last = chunk[0][0], chunk[-1][0]
        texts = _texts(references, first, last)
        of_item: dict[int, list[Any]] = defaultdict(list)
        rows = outputs.filter(item__gte=first, item__lte=last)
        for row in rows.values_list("item", "pk", "system", "step", "text", hashes):
            of_item[row[0]].append(row)
        found = []
        for item, key, turns, source, group in chunk:
            context = tuple(map(str, turns))
            refs = tuple(texts.get(item, ()))
            for _, pk, system_pk, step, text, old in of_item.get(item, ()):
                record = Record(
                    text=text,
                    references=refs,
                    context=context,
                    source=source,
                    item=key,
                    system=names[system_pk],
                    step=step,
                    group=group,
                )
                found.append(Input(pk, step, record, old))
        if found:
            yield found


def _texts(references: ReferenceSet | None, first: int, last: int) -> dict[int, list[str]]:
    texts: dict[int, list[str]] = defaultdict(list)
    if references is not None and references.pk:
        rows = Reference.objects.filter(item__gte=first, item__lte=last, set=references)
        for item, text in rows.order_by("item", "position").values_list("item", "text"):
            texts[item].append(text)
    return texts


def input_hash(identity: Hashable) -> int:
    """A signed 64-bit hash of everything a score depends on, as it fits into a column of integers."""
    digest = hashlib.blake2b(repr(identity).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class DataHash:
    """Order-free hash of scored rows: the same data give the same hash in any database."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, record: Record, hash_of_input: int) -> None:
        key = "\x1f".join((record.item, record.system, str(record.step), str(hash_of_input)))
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self._sum = (self._sum + int.from_bytes(digest, "big")) % (1 << 64)

    @property
    def text(self) -> str:
        return f"{self._sum:016x}"[:8]
