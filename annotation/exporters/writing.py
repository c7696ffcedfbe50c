"""Named reference sets and writing in an export: every set except `original` (references.jsonl), with the origin of
written texts, and every attempt of writing campaigns (attempts.jsonl). Imported rows are written unchanged, before the
project's own, except that annotators are named like raters."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from annotation.models import (
    AttemptElsewhere,
    Reference,
    ReferenceSet,
    WritingAttempt,
    WritingCampaign,
    WrittenElsewhere,
    WrittenReference,
)
from annotation.models.data import ORIGINAL
from annotation.parsers import canonical
from annotation.parsers.writer import ATTEMPT_TIMES, WRITTEN_TIMES
from annotation.selectors.writing_rows import make_attempt_row, make_written_row, select_parts
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import rater_names

from .people import as_stored

BATCH = 1000
Row = dict[str, Any]


def rows(project: Project, people: Callable[[str], str] = as_stored) -> Iterator[tuple[str, Row]]:
    """(table, row): sets by name, items in natural order, references by position, then texts outside the set; attempts
    by campaign. The latter two are in order of creation. `people` maps names of annotators elsewhere; annotators of
    this installation have pseudonyms."""
    pseudonyms = rater_names(project.pk)
    names = sorted(ReferenceSet.objects.filter(project=project).exclude(name=ORIGINAL).values_list("name", "pk"))
    for name, pk in names:
        yield from _references(name, pk, pseudonyms, people)
        yield from _gone(name, pk, pseudonyms, people)
    far = AttemptElsewhere.objects.filter(project=project)
    campaigns = dict(WritingCampaign.objects.filter(project=project).values_list("slug", "pk"))
    for slug in sorted({*campaigns, *far.order_by().values_list("campaign", flat=True).distinct()}):
        encoded_rows = far.filter(campaign=slug).order_by("pk").values_list("row", flat=True)
        for text in encoded_rows.iterator(BATCH):
            yield "attempts", _called(json.loads(text), people)
        attempts = select_parts(WritingAttempt.objects.filter(campaign=campaigns.get(slug))).order_by("pk")
        for attempt in attempts.iterator(BATCH):
            yield "attempts", make_canonical_row(make_attempt_row(attempt, pseudonyms))


def make_canonical_row(row: Row) -> Row:
    """Values in canonical form, columns in their order."""
    return {name: canonical(value) for name, value in row.items()}


def remove_times(table: str, row: Row) -> Row:
    """The row with null for times and durations."""
    if table == "attempts":
        return row | {name: None for name in ATTEMPT_TIMES if name in row}
    if table == "references" and isinstance(row.get("written"), dict):
        origin = row["written"]
        return row | {"written": origin | {name: None for name in WRITTEN_TIMES if name in origin}}
    return row


def _called(origin: Row, people: Callable[[str], str]) -> Row:
    """An imported row with its annotator named as in this export."""
    name = origin.get("annotator")
    return {**origin, "annotator": people(name)} if isinstance(name, str) and name else origin


def _references(
    name: str, pk: int, pseudonyms: dict[int, str], people: Callable[[str], str]
) -> Iterator[tuple[str, Row]]:
    stored = Reference.objects.filter(set=pk).select_related("item")
    references = stored.order_by("item__order_key", "position").iterator(BATCH)
    while batch := list(islice(references, BATCH)):
        written = {
            row.reference_id: row
            for row in WrittenReference.objects.filter(reference__in=[row.pk for row in batch]).select_related(
                "campaign", "task", "member", "attempt"
            )
        }
        far = WrittenElsewhere.objects.filter(reference__in=[row.pk for row in batch])
        origins = dict(far.values_list("reference", "told"))
        for row in batch:
            line: Row = {"set": name, "item": row.item.key, "position": row.position, "text": row.text}
            line["meta"] = canonical(row.meta)
            text_here = written.get(row.pk)
            if text_here is not None:
                line["written"] = make_canonical_row(make_written_row(text_here, pseudonyms))
            elif row.pk in origins:
                line["written"] = _called(json.loads(origins[row.pk]), people)
            yield "references", line


def _gone(name: str, pk: int, pseudonyms: dict[int, str], people: Callable[[str], str]) -> Iterator[tuple[str, Row]]:
    """Written texts outside the set: withdrawn, rejected or waiting; without a position."""
    far = WrittenElsewhere.objects.filter(set=pk, reference=None).order_by("pk")
    for key, text, meta, origin in far.values_list("item__key", "text", "meta", "told").iterator(BATCH):
        yield "references", {
            "set": name, "item": key, "position": None, "text": text, "meta": canonical(meta),
            "written": _called(json.loads(origin), people),
        }  # fmt: skip
    gone = WrittenReference.objects.filter(set=pk, reference=None).order_by("pk")
    parts = gone.select_related("campaign", "task", "member", "attempt", "unit__item")
    for row in parts.iterator(BATCH):
        yield "references", {
            "set": name, "item": row.unit.item.key, "position": None, "text": row.text, "meta": canonical(row.meta),
            "written": make_canonical_row(make_written_row(row, pseudonyms)),
        }  # fmt: skip
