"""The rows of a project in canonical order and form, in batches of constant memory. The order is the same on every
database (`order_key`), so that a dump of a loaded dump is byte-identical."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Exists, Max, OuterRef, QuerySet

from annotation.models import (
    Aspect,
    Comparison,
    CorpusPair,
    Dialogue,
    Item,
    Output,
    Rating,
    Reference,
    System,
)
from annotation.models.data import ORIGINAL
from annotation.parsers import canonical
from annotation.selectors.stored import as_text, decode, make_meta, read_stated_scales
from evalapp.accounts.models import Project

from . import writing
from .layouts import Plan
from .people import as_stored

BATCH = 500
Row = dict[str, Any]


@contextmanager
def one_moment() -> Iterator[None]:
    """A read-only snapshot of the project as of the first query, without blocking writers."""
    if connection.in_atomic_block:
        yield
        return
    if connection.vendor != "postgresql":
        with _snapshot_sqlite():
            yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _snapshot_sqlite() -> Iterator[None]:
    """A read transaction. Django's would start with IMMEDIATE and block writers."""
    connection.ensure_connection()
    if connection.connection.in_transaction:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def make_dataset_document(project: Project) -> Row:
    stated = read_stated_scales(project)
    aspects = [
        {
            "name": aspect.name, "min": canonical(aspect.low), "max": canonical(aspect.high),
            **canonical(make_meta(aspect, stated)),
        }
        for aspect in Aspect.objects.filter(project=project).order_by("position", "id")
    ]  # fmt: skip
    return {
        "name": project.name, "task": project.task, "lang": project.lang, "aspects": aspects,
        "licence": project.licence, "source": project.source, "notes": project.notes,
        **canonical(project.meta.get("dataset", {})),
    }  # fmt: skip


def make_plan(project: Project) -> Plan:
    """What a layout for another program must know before the first row."""
    systems = name_systems(project)
    sides = list(Output.objects.filter(project=project).order_by().values_list("system_id", "step").distinct())
    place = {pk: number for number, pk in enumerate(systems)}
    sides.sort(key=lambda side: (place[side[0]], -1 if side[1] is None else side[1]))
    references = Reference.objects.filter(set__project=project, set__name=ORIGINAL)
    most = references.order_by().values("item_id").annotate(n=Count("*")).aggregate(Max("n"))["n__max"]

    aspects = Aspect.objects.filter(project=project)

    def list_aspects(judged: QuerySet[Any]) -> frozenset[str]:
        return frozenset(aspects.filter(Exists(judged.filter(aspect=OuterRef("pk")))).values_list("name", flat=True))

    rated = Rating.objects.filter(project=project, output__isnull=False)
    values = rated.order_by().values_list("aspect__name", "value").distinct()
    return Plan(
        head=make_dataset_document(project),
        sides=tuple((systems[system], step) for system, step in sides),
        compared=list_aspects(Comparison.objects.filter(project=project)),
        rated=list_aspects(rated),
        fractional=frozenset(name for name, value in values.iterator() if value != int(value)),
        n_references=most or 0,
        n_items=Item.objects.filter(project=project).count(),
        has_turns=Item.objects.filter(project=project).exclude(context=[]).exists(),
    )


def rows(project: Project, raters: Callable[[str], str] = as_stored) -> Iterator[tuple[str, Row]]:
    """(table, row). Rows of a table are in canonical order; tables are interleaved. `raters` maps rater ids to those of
    the export."""
    systems = name_systems(project)
    aspects = dict(Aspect.objects.filter(project=project).values_list("id", "name"))
    yield from _systems(project)
    items = Item.objects.filter(project=project).order_by("order_key")
    columns = items.values_list("id", "key", "context", "source", "group", as_text("meta")).iterator(BATCH)
    while batch := list(islice(columns, BATCH)):
        yield from _items(batch)
        keys = {row[0]: row[1] for row in batch}
        outputs = _Outputs(keys, systems)
        yield from outputs.rows()
        yield from _ratings(outputs, aspects, raters)
        yield from _comparisons(outputs, aspects, raters)
    yield from _dialogues(project, systems, aspects, raters)
    pairs = CorpusPair.objects.filter(project=project).order_by("position")
    for query, response, meta in pairs.values_list("query", "response", as_text("meta")).iterator(2000):
        yield "corpus", {"query": query, "response": response, **_meta(meta)}
    yield from writing.rows(project, raters)


def name_systems(project: Project) -> dict[int, str]:
    """Names of systems by primary key, in natural order."""
    return dict(System.objects.filter(project=project).order_by("order_key").values_list("id", "name"))


def sort_outputs(rows: list[tuple[Any, ...]], items: Iterable[int], systems: Iterable[int]) -> None:
    """Sort rows that start with item, system and step by the order of `items` and `systems`, rows without step
    first."""
    item_at, system_at = ({id: place for place, id in enumerate(ids)} for ids in (items, systems))
    rows.sort(key=lambda row: (item_at[row[0]], system_at[row[1]], -1 if row[2] is None else row[2]))


def _meta(text: str) -> Row:
    return {} if text == "{}" else {"meta": canonical(decode(text))}


def _systems(project: Project) -> Iterator[tuple[str, Row]]:
    declared = System.objects.filter(project=project, declared=True).order_by("order_key")
    for name, kind, meta in declared.values_list("name", "kind", "meta"):
        yield "systems", {"id": name, "kind": kind, "meta": canonical(meta)}


def _items(batch: list[tuple]) -> Iterator[tuple[str, Row]]:
    references: dict[int, list[str]] = defaultdict(list)
    stored = Reference.objects.filter(item_id__in=[row[0] for row in batch], set__name=ORIGINAL)
    for item, text in stored.order_by("item_id", "position").values_list("item_id", "text"):
        references[item].append(text)
    for id, key, context, source, group, meta in batch:
        yield "items", {
            "id": key, "context": context, "source": source, "references": references[id], "group": group,
            "meta": canonical(decode(meta)),
        }  # fmt: skip


class _Outputs:
    """The outputs of a batch of items, in order, with the position of each."""

    def __init__(self, items: dict[int, str], systems: dict[int, str]) -> None:
        stored = Output.objects.filter(item_id__in=items)
        outputs_read = list(stored.values_list("item_id", "system_id", "step", "id", "text", as_text("meta")))
        sort_outputs(outputs_read, items, systems)
        self.ordered = [(items[item], systems[system], *rest) for item, system, *rest in outputs_read]
        self.items = items
        self.place = {row[3]: place for place, row in enumerate(outputs_read)}

    def rows(self) -> Iterator[tuple[str, Row]]:
        for item, system, step, _, text, meta in self.ordered:
            yield "outputs", {
                "item": item, "system": system, "text": text, "step": step, "meta": canonical(decode(meta)),
            }  # fmt: skip


def _ratings(outputs: _Outputs, aspects: dict[int, str], raters: Callable[[str], str]) -> Iterator[tuple[str, Row]]:
    stored = Rating.objects.filter(output__item_id__in=outputs.items).values_list(
        "output_id", "aspect_id", "rater", "value", "simulated", as_text("meta")
    )
    ratings = [
        (outputs.place[output], raters(rater), aspects[aspect], *rest) for output, aspect, rater, *rest in stored
    ]
    ratings.sort(key=lambda row: row[:3])
    for place, rater, aspect, value, simulated, meta in ratings:
        item, system, step, *_ = outputs.ordered[place]
        row: Row = {"item": item, "system": system, "rater": rater, "aspect": aspect, "value": canonical(value)}
        if step is not None:
            row["step"] = step
        if simulated:
            row["simulated"] = True
        yield "ratings", row | _meta(meta)


def _comparisons(outputs: _Outputs, aspects: dict[int, str], raters: Callable[[str], str]) -> Iterator[tuple[str, Row]]:
    stored = Comparison.objects.filter(output_a__item_id__in=outputs.items).values_list(
        "output_a_id", "output_b_id", "reference", "aspect_id", "rater", "verdict", "simulated", as_text("meta")
    )
    comparisons = [
        (outputs.place[a], -1 if b is None else outputs.place[b], -1 if reference is None else reference,
         raters(rater), aspects[aspect], *rest)
        for a, b, reference, aspect, rater, *rest in stored
    ]  # fmt: skip
    comparisons.sort(key=lambda row: row[:5])
    for a, b, reference, rater, aspect, verdict, simulated, meta in comparisons:
        item, system_a, step_a, *_ = outputs.ordered[a]
        _, system_b, step_b, *_ = outputs.ordered[b] if b >= 0 else ("", "", None)
        row: Row = {
            "item": item, "system_a": system_a,
            "system_b": system_b if reference < 0 else {"reference": reference},
            "rater": rater, "aspect": aspect, "verdict": verdict,
        }  # fmt: skip
        if step_a is not None:
            row["step_a"] = step_a
        if step_b is not None:
            row["step_b"] = step_b
        if simulated:
            row["simulated"] = True
        yield "comparisons", row | _meta(meta)


def _dialogues(
    project: Project, systems: dict[int, str], aspects: dict[int, str], raters: Callable[[str], str]
) -> Iterator[tuple[str, Row]]:
    stored = Dialogue.objects.filter(project=project).order_by("order_key")
    columns = stored.values_list("id", "key", "turns", "system_id", "speakers", as_text("meta")).iterator(BATCH)
    while batch := list(islice(columns, BATCH)):
        for _, key, turns, system, speakers, meta in batch:
            row: Row = {"id": key, "turns": turns}
            if system is not None:
                row["system"] = systems[system]
            if speakers is not None:
                row["speakers"] = speakers
            yield "dialogues", row | _meta(meta)
        places = {row[0]: place for place, row in enumerate(batch)}
        ratings = [
            (places[dialogue], raters(rater), aspects[aspect], *rest)
            for dialogue, rater, aspect, *rest in Rating.objects.filter(dialogue_id__in=places).values_list(
                "dialogue_id", "rater", "aspect_id", "value", "simulated", as_text("meta")
            )
        ]
        ratings.sort(key=lambda row: row[:3])
        for place, rater, aspect, value, simulated, meta in ratings:
            row = {"dialogue": batch[place][1], "rater": rater, "aspect": aspect, "value": canonical(value)}
            if simulated:
                row["simulated"] = True
            yield "ratings", row | _meta(meta)
