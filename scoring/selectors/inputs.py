"""Read the inputs of evaluators from a project in chunks of items, with constant memory."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import BigIntegerField, F, OuterRef, Subquery, Value
from django.utils.translation import gettext as _

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
    """An output as a record of the library; `known` is the input hash of its stored score, if any."""

    output: int
    step: int | None
    record: Record
    known: int | None


def get_reference_set(project: Project, name: str) -> ReferenceSet:
    """Return the named set. The original set may have no row if it is empty."""
    reference_set = ReferenceSet.objects.filter(project=project, name=name).first()
    if reference_set is None and name != ORIGINAL:
        names = ", ".join(ReferenceSet.objects.filter(project=project).order_by("name").values_list("name", flat=True))
        text = _("There is no reference set “%(name)s” in %(project)s. There are: %(known)s.")
        raise NotThere(text % {"name": name, "project": project.slug, "known": names or ORIGINAL})
    return reference_set or ReferenceSet(project=project, name=name)


def read_references(references: ReferenceSet | None, **items: Any) -> defaultdict[int, list[str]]:
    """Return the texts of the set in order, by the number of the item; `items` filters them by item."""
    texts: defaultdict[int, list[str]] = defaultdict(list)
    if references is not None and references.pk:
        rows = Reference.objects.filter(set=references, **items).order_by("item", "position")
        for item, text in rows.values_list("item", "text"):
            texts[item].append(text)
    return texts


def count_outputs(project: Project) -> int:
    return Output.objects.filter(project=project).count()


def groups_of_items(project: Project) -> dict[str, str]:
    """Return item -> its current group, "" without one."""
    return dict(Item.objects.filter(project=project).order_by().values_list("key", "group").iterator(chunk_size=20_000))


def contents_of_items(project: Project, *, since: datetime | None = None) -> list[tuple[str, str, str]]:
    """Return key, current group and content hash of items; with `since` only items uploaded later."""
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
    """Yield outputs (of a system and step if `only` is given) with context, source and references, in chunks of
    items; with `known` also the input hashes of that score set."""
    from scoring.ml import Record

    outputs = Output.objects.order_by("item", "pk")
    if only is not None:
        # A sum has no index: SQLite would read all outputs of the system for every chunk.
        outputs = outputs.alias(own=F("system") + 0).filter(own=only[0], step=only[1])
    hashes: Any = Value(None, BigIntegerField())
    if known is not None and known.scores.exists():
        # A subquery uses the index on (set, output). A join may scan the whole table of scores for every chunk, and a
        # condition with thousands of keys is slower than reading the texts.
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
        texts = read_references(references, item__gte=first, item__lte=last)
        of_item: dict[int, list[Any]] = defaultdict(list)
        # Without the project, whose index would lead SQLite through all its outputs for every chunk.
        rows = outputs.filter(item__in=[key[0] for key in chunk])
        for row in rows.values_list("item", "pk", "system", "step", "text", hashes):
            of_item[row[0]].append(row)
        result = []
        for item, key, turns, source, group in chunk:
            context = tuple(map(str, turns))
            refs = tuple(texts.get(item, ()))
            for _item, pk, system_pk, step, text, old in of_item.get(item, ()):
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
                result.append(Input(pk, step, record, old))
        if result:
            yield result


def input_hash(identity: Hashable) -> int:
    """Return a signed 64-bit hash of everything a score depends on."""
    digest = hashlib.blake2b(repr(identity).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class DataHash:
    """Hash of scored rows that does not depend on their order."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, record: Record, hash_of_input: int) -> None:
        self.add_place((record.item, record.system, record.step, hash_of_input))

    def add_place(self, place: Iterable[Any]) -> None:
        """Add values that identify a scored row, such as item, system, step and the hash of its input."""
        key = "\x1f".join(map(str, place))
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self._sum = (self._sum + int.from_bytes(digest, "big")) % (1 << 64)

    @property
    def text(self) -> str:
        return f"{self._sum:016x}"[:8]
