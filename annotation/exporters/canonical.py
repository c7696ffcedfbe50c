"""The rows of a project in the one order and form that a dump has, batch by batch in flat memory. Order is by
code point on every database, so that a dump of a loaded dump is byte-identical."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Collate

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
from annotation.selectors.stored import as_text, decode, meta_of, stated_scales
from evalapp.accounts.models import Project

from . import writing
from .people import as_stored

BATCH = 500
Row = dict[str, Any]


def by_code_point(rows: QuerySet, column: str) -> QuerySet:
    if connection.vendor == "postgresql":
        return rows.order_by(Collate(F(column), "C"))
    return rows.order_by(column)


@contextmanager
def one_moment() -> Iterator[None]:
    """Everything read inside shows the project as it was at the first question; nobody who writes waits for it."""
    if connection.in_atomic_block:
        yield
        return
    if connection.vendor != "postgresql":
        with _one_moment_of_sqlite():
            yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _one_moment_of_sqlite() -> Iterator[None]:
    """A transaction that only reads. One of Django's would begin IMMEDIATE here and keep writers out."""
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


def dataset_document(project: Project) -> Row:
    stated = stated_scales(project)
    aspects = [
        {
            "name": aspect.name, "min": canonical(aspect.low), "max": canonical(aspect.high),
            **canonical(meta_of(aspect, stated)),
        }
        for aspect in Aspect.objects.filter(project=project).order_by("position", "id")
    ]  # fmt: skip
    return {
        "name": project.name, "task": project.task, "lang": project.lang, "aspects": aspects,
        "licence": project.licence, "source": project.source, "notes": project.notes,
        **canonical(project.meta.get("dataset", {})),
    }  # fmt: skip


def rows(project: Project, raters: Callable[[str], str] = as_stored) -> Iterator[tuple[str, Row]]:
    """(table, row). Rows of one table come in canonical order; tables are interleaved. `raters` says what each rater is
    called here."""
    systems = dict(System.objects.filter(project=project).values_list("id", "name"))
    aspects = dict(Aspect.objects.filter(project=project).values_list("id", "name"))
    yield from _systems(project)
    items = by_code_point(Item.objects.filter(project=project), "key")
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


def _meta(text: str) -> Row:
    return {} if text == "{}" else {"meta": canonical(decode(text))}


def _systems(project: Project) -> Iterator[tuple[str, Row]]:
    declared = by_code_point(System.objects.filter(project=project, declared=True), "name")
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
    """The outputs of a batch of items, in order, and where each stands."""

    def __init__(self, items: dict[int, str], systems: dict[int, str]) -> None:
        found = [
            (items[item], systems[system], step, id, text, meta)
            for id, item, system, step, text, meta in Output.objects.filter(item_id__in=items).values_list(
                "id", "item_id", "system_id", "step", "text", as_text("meta")
            )
        ]
        found.sort(key=lambda row: (row[0], row[1], -1 if row[2] is None else row[2]))
        self.found = found
        self.items = items
        self.place = {row[3]: row[:3] for row in found}

    def rows(self) -> Iterator[tuple[str, Row]]:
        for item, system, step, _, text, meta in self.found:
            yield "outputs", {
                "item": item, "system": system, "text": text, "step": step, "meta": canonical(decode(meta)),
            }  # fmt: skip


def _ratings(outputs: _Outputs, aspects: dict[int, str], raters: Callable[[str], str]) -> Iterator[tuple[str, Row]]:
    stored = Rating.objects.filter(output__item_id__in=outputs.items).values_list(
        "output_id", "aspect_id", "rater", "value", "simulated", as_text("meta")
    )
    found = [(*outputs.place[output], raters(rater), aspects[aspect], *rest) for output, aspect, rater, *rest in stored]
    found.sort(key=lambda row: (row[0], row[1], -1 if row[2] is None else row[2], row[3], row[4]))
    for item, system, step, rater, aspect, value, simulated, meta in found:
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
    found = []
    for a, b, reference, aspect, rater, *rest in stored:
        item, system_a, step_a = outputs.place[a]
        _, system_b, step_b = outputs.place[b] if b is not None else ("", "", None)
        found.append((item, system_a, step_a, system_b, step_b, reference, raters(rater), aspects[aspect], *rest))
    found.sort(key=lambda row: tuple(-1 if part is None else part for part in row[:8]))
    for item, system_a, step_a, system_b, step_b, reference, rater, aspect, verdict, simulated, meta in found:
        row: Row = {
            "item": item, "system_a": system_a,
            "system_b": system_b if reference is None else {"reference": reference},
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
    stored = by_code_point(Dialogue.objects.filter(project=project), "key")
    columns = stored.values_list("id", "key", "turns", "system_id", "speakers", as_text("meta")).iterator(BATCH)
    while batch := list(islice(columns, BATCH)):
        for _, key, turns, system, speakers, meta in batch:
            row: Row = {"id": key, "turns": turns}
            if system is not None:
                row["system"] = systems[system]
            if speakers is not None:
                row["speakers"] = speakers
            yield "dialogues", row | _meta(meta)
        keys = {row[0]: row[1] for row in batch}
        ratings = [
            (keys[dialogue], raters(rater), aspects[aspect], *rest)
            for dialogue, rater, aspect, *rest in Rating.objects.filter(dialogue_id__in=keys).values_list(
                "dialogue_id", "rater", "aspect_id", "value", "simulated", as_text("meta")
            )
        ]
        ratings.sort(key=lambda row: row[:3])
        for key, rater, aspect, value, simulated, meta in ratings:
            row = {"dialogue": key, "rater": rater, "aspect": aspect, "value": canonical(value)}
            if simulated:
                row["simulated"] = True
            yield "ratings", row | _meta(meta)
