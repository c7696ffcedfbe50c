"""A page of the list of items. A search in texts looks into the text blocks first and reads only those items, in the
order of the list, whose block can hold what is wanted; what it finds is what `find_items` finds."""

from __future__ import annotations

import json
from dataclasses import replace

from django.db import connection
from django.db.models import Case, F, Func, Q, QuerySet, Value, When
from django.db.models.functions import StrIndex, Upper

from annotation.models import Item, TextBlock
from evalapp.accounts.models import Project
from evalapp.common.pagination import Page, keyset, page_of_list, read_cursor
from evalapp.common.sqlite.lookups import FUNCTION

from .items import ItemFilter, find_items, natural_order

#: How many blocks are read at first, then if these do not fill the page; then all.
STEPS = (4, 32)

Span = tuple[str, str | None]


def item_page(project: Project, wanted: ItemFilter, *, cursor: str = "", size: int = 50) -> Page:
    rows = find_items(project, wanted)
    if (order := natural_order(project.pk)) is not None:
        return _natural_page(rows, order, wanted, cursor, size)
    backwards, values = read_cursor(cursor, 1)
    spans = None
    if wanted.q and wanted.scope != "id":
        spans = _spans(project, wanted, str(values[0]) if values else None, backwards)
    if spans is None:
        return keyset(rows, order=("key",), cursor=cursor, size=size)
    if not spans:
        return keyset(Item.objects.none(), order=("key",), cursor=cursor, size=size)
    for step in (*STEPS, len(spans)):
        near = spans[-step:] if backwards else spans[:step]
        found = keyset(rows.filter(_within(near)), order=("key",), cursor=cursor, size=size)
        if step >= len(spans) or (found.previous if backwards else found.next):
            break
    return found


def _natural_page(rows: QuerySet[Item], order: list[int], wanted: ItemFilter, cursor: str, size: int) -> Page:
    if wanted.active:
        found = set(rows.order_by().values_list("pk", flat=True))
        order = [pk for pk in order if pk in found]
    page = page_of_list(order, cursor=cursor, size=size)
    items = Item.objects.in_bulk(page.rows)
    return replace(page, rows=[items[pk] for pk in page.rows if pk in items])


def _spans(project: Project, wanted: ItemFilter, at: str | None, backwards: bool) -> list[Span] | None:
    """The key ranges in which something can be found after (before) the key `at`, in order; None if the project has no
    blocks. Keys are compared by the database only, which has an order of its own."""
    inside = json.dumps(wanted.q, ensure_ascii=False)[1:-1]
    text = "outputs" if wanted.scope == "output" else "contexts"
    words = sorted({wanted.q, inside} if text == "contexts" else {wanted.q})
    found_at = {f"at_{place}": _find_word(text, word) for place, word in enumerate(words)}
    # A block whose text is null has changed: everything can be in it.
    possible = Q(**{text: None})
    for name in found_at:
        possible |= Q(**{f"{name}__gt": 0})
    before = Q(pk=None) if at is None else Q(first_key__lt=at) if backwards else Q(first_key__lte=at)
    rows = list(
        TextBlock.objects.filter(project=project)
        .annotate(**found_at)
        .annotate(possible=Case(When(possible, then=1), default=0), before=Case(When(before, then=1), default=0))
        .order_by("first_key")
        .values_list("first_key", "possible", "before")
    )
    if not rows:
        return None
    spans = []
    for (first, possible_here, begins_before), following in zip(rows, [*rows[1:], None], strict=True):
        beside = not begins_before if backwards else following is not None and following[2]
        if possible_here and not (at is not None and beside):
            spans.append((first, following[0] if following else None))
    return spans


def _find_word(column: str, word: str) -> StrIndex:
    """Where a block holds `word`, in capitals as the block does. SQLite made the capitals of a to z alone, so the other
    letters of the block follow now."""
    if connection.vendor == "sqlite" and not word.isascii():
        return StrIndex(Func(F(column), function=FUNCTION), Func(Value(word), function=FUNCTION))
    return StrIndex(F(column), Upper(Value(word)))


def _within(spans: list[Span]) -> Q:
    """Items with a key in one of the spans (in order); neighbouring ones are put together."""
    joined: list[Span] = []
    for first, end in spans:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    condition = Q()
    for first, end in joined:
        one = Q(key__gte=first)
        if end is not None:
            one &= Q(key__lt=end)
        condition |= one
    return condition
