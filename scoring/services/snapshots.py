"""Taking and deleting snapshots of leaderboards. A snapshot is a copy: nothing computes it anew."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.naming import check_names
from scoring.boards.base import Query

from ..models import Leaderboard, Snapshot
from ..selectors.exports import without_raters
from ..selectors.snapshots import get_snapshot
from .leaderboards import answer_leaderboard

#: Addresses of pages beside those of snapshots.
RESERVED = frozenset({"compare", "take"})
LONGEST = 70
#: Within this time the same wish again is the same click.
TWICE = timedelta(seconds=10)


def take_snapshot(
    *, project: Project, user: Any = None, query: Query, title: str = "", note: str = "", slug: str = ""
) -> Snapshot:
    """Keep the present table under an address that stays. Refused while the table is being computed anew: a snapshot
    says what the data said when it was taken. Asked for twice in one breath (a double click), it is taken once."""
    answer = answer_leaderboard(project=project, query=query, user=user)
    board = answer.leaderboard
    if board is None or not answer.is_current:
        number = f"run {answer.run.pk}" if answer.run else "a run"
        raise Conflict(f"The table is just being computed in {number}. Keep it when it stands.")
    if not board.table["rows"]:
        raise BadInput(board.table["note"] or "The table has no rows yet.")
    check_names(title=title)
    now = timezone.now()
    about = board.table.get("aspect") or board.table.get("by") or "all aspects"
    title = title.strip() or f"{board.get_kind_display()}, {about}, {now:%Y-%m-%d}"
    # What stays for good names no rater: somebody may ask to be forgotten.
    table = without_raters(board.table) if query.names_raters else board.table
    with transaction.atomic():
        # Two requests at once come one after the other.
        Leaderboard.objects.select_for_update().filter(pk=board.pk).values_list("pk").first()
        if (taken := _just_taken(board, user, slug, title[:200], note.strip())) is not None:
            return taken
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


def _just_taken(board: Leaderboard, user: Any, slug: str, title: str, note: str) -> Snapshot | None:
    """The same table that the same person has just kept with the same words."""
    if getattr(user, "pk", None) is None:
        return None
    rows = Snapshot.objects.filter(
        project=board.project_id, kind=board.kind, stamp=board.stamp, computed_at=board.computed_at, title=title,
        note=note, created_by=user, created_at__gt=timezone.now() - TWICE,
    )  # fmt: skip
    return next((row for row in rows if row.params == board.params and slug in ("", row.slug)), None)


def _free_slug(project: Project, wished: str, title: str) -> str:
    taken = set(Snapshot.objects.filter(project=project).values_list("slug", flat=True)) | RESERVED
    if wished:
        if wished != slugify(wished) or len(wished) > LONGEST:
            text = f"A name has small letters, digits and hyphens, at most {LONGEST}."
            raise BadInput(text, faults=[Fault(text, field="name")])
        if wished in taken:
            text = f"The name “{wished}” is taken. Choose another, or delete that snapshot first."
            raise Conflict(text, faults=[Fault(text, field="name")])
        return wished
    stem = slugify(title)[:LONGEST].strip("-") or "snapshot"
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
