"""The text blocks that searching looks into first (`TextBlock`): told when texts change, made anew by the job `search`.

Whoever writes items or outputs calls `forget_texts` in the same transaction, under the project's lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Min, Window
from django.db.models.functions import RowNumber

from annotation.models import Item, TextBlock
from evalapp.accounts.models import Project
from evalapp.common.queue import enqueue_run
from evalapp.names import natural_key

from .uploads import only_one_promotion

#: Items of a block. Smaller ones are found more exactly, larger ones make fewer rows.
BLOCK = 128
#: Blocks made in one transaction, so that an upload need not wait long.
BATCH = 16
#: Projects up to this size are searched row by row: quick enough.
LARGE = 5_000
#: From so many changed items on, all blocks are made anew.
MANY = 2_000

_TEXTS = {
    "postgresql": (
        "string_agg(upper(i.context::text) || E'\\n' || coalesce(upper(i.source), ''), E'\\n')",
        "string_agg(upper(o.text), E'\\n')",
    ),
    "sqlite": (
        "group_concat(upper(CAST(i.context AS text)) || char(10) || coalesce(upper(i.source), ''), char(10))",
        "group_concat(upper(o.text), char(10))",
    ),
}


def forget_texts(*, project: Project, keys: Sequence[str] | None = None) -> None:
    """Texts of these items (all, if None) have changed: their blocks hold nothing until they are made anew."""
    blocks = TextBlock.objects.filter(project=project)
    if keys is None or len(keys) > MANY:
        blocks.update(contexts=None, outputs=None)
        return
    if not blocks.exists():
        return
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE annotation_textblock SET contexts = NULL, outputs = NULL WHERE id = (SELECT b.id FROM"
            " annotation_textblock b WHERE b.project_id = %s AND b.first_key <= %s ORDER BY b.first_key DESC LIMIT 1)",
            [(project.pk, natural_key(key)) for key in keys],
        )


def prepare_search_later(*, project: Project, user: Any = None) -> None:
    """Queue the job after commit if there is anything to make."""
    blocks = TextBlock.objects.filter(project=project)
    waiting = blocks.filter(contexts=None).exists()
    if waiting or (not blocks.exists() and Item.objects.filter(project=project)[LARGE : LARGE + 1].exists()):
        transaction.on_commit(
            lambda: enqueue_run(kind="search", project=project, user=user, params={}, title="Prepare the search")
        )


def prepare_search(*, project: Project, tick: Callable[[int, int], None] = lambda done, total: None) -> int:
    """Make every block that is missing or has changed; returns how many. May be stopped and begun again."""
    with only_one_promotion(project, None):
        if not TextBlock.objects.filter(project=project).exists():
            TextBlock.objects.create(project=project, first_key="")
    done = 0
    while waiting := list(TextBlock.objects.filter(project=project, contexts=None).order_by("first_key")[:BATCH]):
        with only_one_promotion(project, None):
            for block in waiting:
                _make(block)
        done += len(waiting)
        tick(done, done + TextBlock.objects.filter(project=project, contexts=None).count())
    return done


def _make(block: TextBlock) -> None:
    """Its texts; a block that has grown too large is split first, and its parts come later."""
    later = TextBlock.objects.filter(project=block.project_id, first_key__gt=block.first_key)
    end = later.aggregate(key=Min("first_key"))["key"]
    rows = Item.objects.filter(project=block.project_id, order_key__gte=block.first_key)
    if end is not None:
        rows = rows.filter(order_key__lt=end)
    numbered = rows.annotate(number=Window(RowNumber(), order_by="order_key")).annotate(place=(F("number") - 1) % BLOCK)
    parts = numbered.filter(place=0, number__gt=BLOCK).order_by("order_key")
    starts = list(parts.values_list("order_key", flat=True))
    if len(starts) > 1:  # twice as long as it should be
        TextBlock.objects.bulk_create(TextBlock(project_id=block.project_id, first_key=key) for key in starts)
        end = starts[0]
    contexts, outputs = _TEXTS[connection.vendor]
    where = "i.project_id = %s AND i.order_key >= %s" + (" AND i.order_key < %s" if end is not None else "")
    span = [block.project_id, block.first_key, *([end] if end is not None else [])]
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE annotation_textblock SET"
            f" contexts = coalesce((SELECT {contexts} FROM annotation_item i WHERE {where}), ''),"
            f" outputs = coalesce((SELECT {outputs} FROM annotation_item i JOIN annotation_output o"
            f" ON o.item_id = i.id WHERE {where}), '') WHERE id = %s",
            [*span, *span, block.pk],
        )
