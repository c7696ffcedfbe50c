"""Joining a campaign in two prepared statements, because a whole class may join at the same time."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from evalapp.accounts.models import User
from evalapp.accounts.roles import ROLES_FOR
from evalapp.accounts.selectors import may_enter

from .judging_rows import run


def join_member(cursor: Any, campaign_id: int, user_id: int, seed_of: Callable[[int], int]) -> bool:
    """Add a user to an opened campaign if their role and their invitation allow it. Otherwise False;
    `judging.join_campaign` gives the reason."""
    roles = sorted(ROLES_FOR["annotate"])
    marks = ", ".join(["%s"] * len(roles))
    run(
        cursor,
        f"""SELECT c.seed, c.project_id, s.campaigns IS NULL FROM annotation_campaign c
 JOIN accounts_project p ON p.id = c.project_id AND p.deleting_at IS NULL
 JOIN accounts_membership s ON s.project_id = c.project_id AND s.user_id = %s
 WHERE c.id = %s AND c.state <> 'draft' AND s.role IN ({marks})""",
        [user_id, campaign_id, *roles],
    )
    row = cursor.fetchone()
    if row is None or not (
        row[2] or may_enter(user=User(pk=user_id), project_id=row[1], campaign=f"judging:{campaign_id}")
    ):
        return False
    run(
        cursor,
        """INSERT INTO annotation_campaignmember (campaign_id, annotator_id, seed, practised, given, done, skipped,
 seconds, joined_at) VALUES (%s, %s, %s, 0, 0, 0, 0, 0, %s) ON CONFLICT (campaign_id, annotator_id) DO NOTHING""",
        [campaign_id, user_id, seed_of(row[0]), datetime.now(UTC)],
    )
    return True
