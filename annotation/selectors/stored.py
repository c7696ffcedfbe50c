"""Stored rows with given keys, for the comparison with an import. Each function takes a batch of keys and runs a fixed
number of queries."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from django.db.models import Count, F, Q, QuerySet, TextField
from django.db.models.functions import Cast

from annotation.models import (
    Aspect,
    CampaignAspect,
    Comparison,
    CorpusPair,
    Dialogue,
    Item,
    Output,
    Rating,
    Reference,
    System,
)
from annotation.models.data import OBSERVED, ORIGINAL, STATED
from evalapp.accounts.models import Project


def as_text(column: str) -> Cast:
    """A JSON column as text: most values are `{}` and need no decoding."""
    return Cast(column, TextField())


def decode(text: str | None) -> Any:
    return {} if text == "{}" else None if text is None else json.loads(text)


class StoredSystem(NamedTuple):
    id: int
    kind: str
    meta: dict
    declared: bool


class StoredItem(NamedTuple):
    id: int
    context: list
    source: str | None
    group: str
    meta: dict


class StoredDialogue(NamedTuple):
    id: int
    turns: list
    speakers: list | None
    system: str | None
    meta: dict


def read_stated_scales(project: Project) -> dict[int, tuple[float, float]]:
    """The scale that a campaign states, by aspect."""
    asked = CampaignAspect.objects.filter(aspect__project=project, low__isnull=False)
    return {aspect: (low, high) for aspect, low, high in asked.values_list("aspect", "low", "high")}


def make_meta(aspect: Aspect, stated: Collection[int]) -> dict[str, Any]:
    """The `meta` of an aspect, with a mark if a campaign states its scale."""
    meta: dict[str, Any] = aspect.meta
    return {**meta, STATED: True} if meta.get(OBSERVED) and aspect.pk in stated else meta


def systems(project: Project, names: Collection[str]) -> dict[str, StoredSystem]:
    rows = System.objects.filter(project=project, name__in=names)
    columns = rows.values_list("name", "id", "kind", "meta", "declared")
    return {name: StoredSystem(*rest) for name, *rest in columns}


def items(project: Project, keys: Collection[str]) -> dict[str, StoredItem]:
    rows = Item.objects.filter(project=project, key__in=keys)
    return {
        key: StoredItem(*rest) for key, *rest in rows.values_list("key", "id", "context", "source", "group", "meta")
    }


def item_ids(project: Project, keys: Collection[str]) -> dict[str, int]:
    return dict(Item.objects.filter(project=project, key__in=keys).values_list("key", "id"))


def read_original_references(item_ids: Collection[int]) -> dict[int, list[str]]:
    texts: dict[int, list[str]] = defaultdict(list)
    rows = Reference.objects.filter(item_id__in=item_ids, set__name=ORIGINAL).order_by("item_id", "position")
    for item, text in rows.values_list("item_id", "text"):
        texts[item].append(text)
    return texts


def count_references(item_ids: Collection[int]) -> dict[int, int]:
    rows = Reference.objects.filter(item_id__in=item_ids, set__name=ORIGINAL).order_by()
    return dict(rows.values_list("item_id").annotate(n=Count("id")))


def _outputs(item_ids: Collection[int], system_ids: Collection[int]) -> QuerySet[Output]:
    """Selected by item. The sum stops SQLite from using the index of systems, with which an upload of stored rows would
    read all outputs for each batch."""
    return Output.objects.annotate(by=F("system_id") + 0).filter(item_id__in=item_ids, by__in=system_ids)


def outputs(item_ids: Collection[int], system_ids: Collection[int]) -> Iterator[tuple]:
    """(id, item, system, step, text, meta as text) of all steps."""
    return (
        _outputs(item_ids, system_ids)
        .values_list("id", "item_id", "system_id", "step", "text", as_text("meta"))
        .iterator(2000)
    )


def read_output_keys(item_ids: Collection[int], system_ids: Collection[int]) -> Iterator[tuple]:
    """(id, item, system, step) of all steps."""
    return _outputs(item_ids, system_ids).values_list("id", "item_id", "system_id", "step").iterator(2000)


def dialogues(project: Project, keys: Collection[str]) -> dict[str, StoredDialogue]:
    rows = Dialogue.objects.filter(project=project, key__in=keys)
    columns = rows.values_list("key", "id", "turns", "speakers", "system__name", "meta")
    return {key: StoredDialogue(*rest) for key, *rest in columns}


def ratings(outputs: Collection[int], dialogues: Collection[int], raters: Collection[str]) -> dict[tuple, tuple]:
    """(output, dialogue, aspect, rater) -> (id, value, simulated, meta as text, judgement)."""
    ratings_by_key = {}
    for column, ids in (("output_id", outputs), ("dialogue_id", dialogues)):
        if ids:
            rows = Rating.objects.filter(**{f"{column}__in": ids}, rater__in=raters)
            for output, dialogue, aspect, rater, *rest in rows.values_list(
                "output_id",
                "dialogue_id",
                "aspect_id",
                "rater",
                "id",
                "value",
                "simulated",
                as_text("meta"),
                "judgement",
            ):
                ratings_by_key[output, dialogue, aspect, rater] = tuple(rest)
    return ratings_by_key


def comparisons(outputs: Collection[int], raters: Collection[str]) -> dict[tuple, tuple]:
    """(a, b, reference, aspect, rater) -> (id, verdict, simulated, meta as text, judgement)."""
    rows = Comparison.objects.filter(output_a_id__in=outputs, rater__in=raters).values_list(
        "output_a_id", "output_b_id", "reference", "aspect_id", "rater",
        "id", "verdict", "simulated", as_text("meta"), "judgement",
    )  # fmt: skip
    return {tuple(row[:5]): tuple(row[5:]) for row in rows}


def corpus(project: Project) -> Iterator[tuple]:
    """(id, query, response, meta as text) of the whole corpus, in order."""
    rows = CorpusPair.objects.filter(project=project).order_by("position")
    return rows.values_list("id", "query", "response", as_text("meta")).iterator(2000)


def judged(output_ids: Collection[int]) -> set[int]:
    """The outputs that have ratings or comparisons."""
    ids = set(Rating.objects.filter(output_id__in=output_ids).values_list("output_id", flat=True).distinct())
    for a, b in Comparison.objects.filter(Q(output_a_id__in=output_ids) | Q(output_b_id__in=output_ids)).values_list(
        "output_a_id", "output_b_id"
    ):
        ids |= {a, b}
    return ids & set(output_ids)


def find_judged_items(item_ids: Collection[int]) -> set[int]:
    """The items with judged outputs."""
    rated = Rating.objects.filter(output__item_id__in=item_ids).values_list("output__item_id", flat=True).distinct()
    compared = Comparison.objects.filter(output_a__item_id__in=item_ids).values_list("output_a__item_id", flat=True)
    return set(rated) | set(compared.distinct())


def find_compared_items(item_ids: Collection[int]) -> set[int]:
    """The items whose references are part of Turing comparisons."""
    rows = Comparison.objects.filter(output_a__item_id__in=item_ids, reference__isnull=False)
    return set(rows.values_list("output_a__item_id", flat=True).distinct())
