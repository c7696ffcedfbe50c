"""Take and delete snapshots of leaderboards. A snapshot is a copy that never changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.naming import check_names
from scoring.boards.base import Query

from ..models import Leaderboard, Snapshot
from ..selectors.exports import without_raters
from ..selectors.snapshots import get_snapshot
from .leaderboards import answer_leaderboard

#: Words that URLs use in the place of a snapshot's name.
RESERVED = frozenset({"compare", "take"})
MAX_SLUG = 70
#: A repeated request within this time is a double click.
DOUBLE_CLICK = timedelta(seconds=10)


def take_snapshot(
    *, project: Project, user: Any = None, query: Query, title: str = "", note: str = "", slug: str = ""
) -> Snapshot:
    """Store a copy of the current table under a permanent address.

    Raises `Conflict` while the table is outdated. A double click takes one snapshot.
    """
    answer = answer_leaderboard(project=project, query=query, user=user)
    board = answer.leaderboard
    if board is None or not answer.is_current:
        text = _("The table is being computed in run %(run)s. Take the snapshot when it is finished.")
        raise Conflict(text % {"run": answer.run.pk if answer.run else "-"})
    if not board.table["rows"]:
        raise BadInput(board.table["note"] or _("The table has no rows yet."))
    check_names(title=title)
    now = timezone.now()
    subject = board.table.get("aspect") or board.table.get("by") or _("all aspects")
    title = title.strip() or f"{board.get_kind_display()}, {subject}, {now:%Y-%m-%d}"
    # Snapshots are permanent, and raters may ask for the deletion of their data.
    table = without_raters(board.table) if query.names_raters else board.table
    with transaction.atomic():
        # The lock makes two requests take turns.
        Leaderboard.objects.select_for_update().filter(pk=board.pk).values_list("pk").first()
        if (recent := _find_recent(board, user, slug, title[:200], note.strip())) is not None:
            return recent
        row = Snapshot.objects.create(
            project=project, slug=_free_slug(project, slug, title), title=title[:200], note=note.strip(),
            kind=board.kind, params=board.params, stamp=board.stamp, table=table,
            computed_at=board.computed_at, created_at=now, created_by=user if getattr(user, "pk", None) else None,
        )  # fmt: skip
        audit.record(
            verb="snapshot.taken", project=project, actor=user, object=row, board=board.kind,
            signature=board.table["signature"],
        )  # fmt: skip
    return row


def _find_recent(board: Leaderboard, user: Any, slug: str, title: str, note: str) -> Snapshot | None:
    """Return the snapshot of the same request by the same user a moment ago."""
    if getattr(user, "pk", None) is None:
        return None
    rows = Snapshot.objects.filter(
        project=board.project_id, kind=board.kind, stamp=board.stamp, computed_at=board.computed_at, title=title,
        note=note, created_by=user, created_at__gt=timezone.now() - DOUBLE_CLICK,
    )  # fmt: skip
    return next((row for row in rows if row.params == board.params and slug in ("", row.slug)), None)


def _free_slug(project: Project, name: str, title: str) -> str:
    taken = set(Snapshot.objects.filter(project=project).values_list("slug", flat=True)) | RESERVED
    if name:
        if name != slugify(name) or len(name) > MAX_SLUG:
            text = _("Use lower-case letters, digits and hyphens, at most %(n)d characters.")
            raise BadInput.for_field("name", text % {"n": MAX_SLUG})
        if name in taken:
            text = _("The name “%(name)s” is taken. Choose another, or delete that snapshot first.")
            raise Conflict.for_field("name", text % {"name": name})
        return name
    stem = slugify(title)[:MAX_SLUG].strip("-") or "snapshot"
    if stem not in taken:
        return stem
    return next(slug for number in range(2, 100_000) if (slug := f"{stem}-{number}") not in taken)


def delete_snapshot(*, project: Project, user: Any = None, slug: str) -> None:
    row = get_snapshot(project, slug)
    with transaction.atomic():
        audit.record(
            verb="snapshot.deleted", project=project, actor=user, object=row, title=row.title, board=row.kind,
            signature=row.table.get("signature", ""),
        )  # fmt: skip
        row.delete()
