"""Maintains the text blocks that speed up searches (`TextBlock`): invalidated when texts change, rebuilt by the job
`search`.

Code that writes items or outputs calls `forget_texts` in the same transaction, under the project's lock."""

from collections.abc import Callable, Sequence

from django.db import connection, transaction
from django.db.models import F, Min, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext_noop

from annotation.models import Item, TextBlock
from evalapp.accounts.models import Project, User
from evalapp.common.queue import enqueue_run
from evalapp.names import natural_key

from .uploads import lock_promotion

#: Items per block. Smaller blocks are more selective, larger ones need fewer rows.
BLOCK = 128
#: Blocks per transaction, so that uploads do not wait long.
BATCH = 16
#: Projects up to this number of items are searched row by row, which is fast enough.
LARGE = 5_000
#: Above this number of changed items, all blocks are rebuilt.
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
    """Invalidate the blocks of the items (None: of all items) until they are rebuilt."""
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


def prepare_search_later(*, project: Project, user: User | None = None) -> None:
    """Queue the job after the commit if there are blocks to build."""
    blocks = TextBlock.objects.filter(project=project)
    waiting = blocks.filter(contexts=None).exists()
    if waiting or (not blocks.exists() and Item.objects.filter(project=project)[LARGE : LARGE + 1].exists()):
        title = gettext_noop("Prepare the search")
        transaction.on_commit(lambda: enqueue_run(kind="search", project=project, user=user, params={}, title=title))


def prepare_search(*, project: Project, tick: Callable[[int, int], None] = lambda done, total: None) -> int:
    """Build all missing or invalid blocks; returns their number. Can be interrupted and repeated."""
    with lock_promotion(project, None):
        if not TextBlock.objects.filter(project=project).exists():
            TextBlock.objects.create(project=project, first_key="")
    done = 0
    while waiting := list(TextBlock.objects.filter(project=project, contexts=None).order_by("first_key")[:BATCH]):
        with lock_promotion(project, None):
            for block in waiting:
                _make(block)
        done += len(waiting)
        tick(done, done + TextBlock.objects.filter(project=project, contexts=None).count())
    return done


def _make(block: TextBlock) -> None:
    """Fill a block. A block that is too large is split first; its parts are filled later."""
    later = TextBlock.objects.filter(project=block.project_id, first_key__gt=block.first_key)
    end = later.aggregate(key=Min("first_key"))["key"]
    rows = Item.objects.filter(project=block.project_id, order_key__gte=block.first_key)
    if end is not None:
        rows = rows.filter(order_key__lt=end)
    numbered = rows.annotate(number=Window(RowNumber(), order_by="order_key")).annotate(place=(F("number") - 1) % BLOCK)
    parts = numbered.filter(place=0, number__gt=BLOCK).order_by("order_key")
    starts = list(parts.values_list("order_key", flat=True))
    if len(starts) > 1:  # twice the intended length
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
