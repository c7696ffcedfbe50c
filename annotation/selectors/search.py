"""A page of the list of items. A text search reads the text blocks first and then only items of blocks with a match, in
the order of the list; the result is that of `find_items`."""

import json

from django.db import connection
from django.db.models import Case, F, Func, Q, Value, When
from django.db.models.functions import StrIndex, Upper

from annotation.models import Item, TextBlock
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.common.pagination import WRONG_CURSOR, Page, keyset, read_cursor
from evalapp.common.sqlite_lookups import FUNCTION
from evalapp.names import is_natural_key

from .items import ItemFilter, find_items

#: The number of blocks to read first, and next if these do not fill the page; then all.
STEPS = (4, 32)

Span = tuple[str, str | None]


def get_item_page(project: Project, wanted: ItemFilter, *, cursor: str = "", size: int = 50) -> Page:
    rows = find_items(project, wanted)
    backwards, values = read_cursor(cursor, 1)
    if values and not is_natural_key(str(values[0])):
        raise BadInput(str(WRONG_CURSOR))
    spans = None
    if wanted.q and wanted.scope != "id":
        spans = _spans(project, wanted, str(values[0]) if values else None, backwards)
    if spans is None:
        return keyset(rows, order=("order_key",), cursor=cursor, size=size)
    if not spans:
        return keyset(Item.objects.none(), order=("order_key",), cursor=cursor, size=size)
    for step in (*STEPS, len(spans)):
        near = spans[-step:] if backwards else spans[:step]
        page = keyset(rows.filter(_within(near)), order=("order_key",), cursor=cursor, size=size)
        if step >= len(spans) or (page.previous if backwards else page.next):
            break
    return page


def _spans(project: Project, wanted: ItemFilter, at: str | None, backwards: bool) -> list[Span] | None:
    """The ranges of `order_key` with possible matches after (before) the key `at`, in order; None if the project has no
    blocks."""
    inside = json.dumps(wanted.q, ensure_ascii=False)[1:-1]
    text = "outputs" if wanted.scope == "output" else "contexts"
    words = sorted({wanted.q, inside} if text == "contexts" else {wanted.q})
    found_at = {f"at_{place}": _find_word(text, word) for place, word in enumerate(words)}
    # A block with a null text has changed, so it may match.
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
    """The position of `word` in a block, both in upper case. SQLite only converts a to z, so the other letters of the
    block are converted here."""
    if connection.vendor == "sqlite" and not word.isascii():
        return StrIndex(Func(F(column), function=FUNCTION), Func(Value(word), function=FUNCTION))
    return StrIndex(F(column), Upper(Value(word)))


def _within(spans: list[Span]) -> Q:
    """Items with an `order_key` in one of the ordered spans; neighbouring spans are merged."""
    joined: list[Span] = []
    for first, end in spans:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    condition = Q()
    for first, end in joined:
        one = Q(order_key__gte=first)
        if end is not None:
            one &= Q(order_key__lt=end)
        condition |= one
    return condition
