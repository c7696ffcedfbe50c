"""Attempts and written references as flat rows with their origin, for the API and exports. People appear under
pseudonyms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from annotation.models import WritingAttempt, WritingCampaign, WrittenReference

Row = dict[str, Any]


def list_attempts(*, campaign: WritingCampaign) -> QuerySet[WritingAttempt]:
    """Attempts of a campaign, newest first, with the relations that `attempt_row` needs."""
    rows = WritingAttempt.objects.filter(campaign=campaign)
    return with_parts(rows).order_by("-pk")


def with_parts(rows: QuerySet[WritingAttempt]) -> QuerySet[WritingAttempt]:
    return rows.select_related("campaign", "task__unit__item", "member__set")


def attempt_row(row: WritingAttempt, pseudonyms: Mapping[int, str]) -> Row:
    return {
        "campaign": row.campaign.slug,
        "item": row.task.unit.item.key,
        "annotator": pseudonyms.get(row.member.annotator_id, f"former member {row.member.number}"),
        "arm": row.task.arm,
        "annotator_group": row.member.group,
        "set": row.member.set.name,
        "number": row.number,
        "round": row.round,
        "decision": row.decision,
        "why": row.why,
        "candidate": row.candidate_text,
        "candidate_source": row.source,
        "text_before": row.text_before,
        "text": row.text,
        "relevant": row.relevant,
        "edited": row.edited,
        "counted": row.counted,
        "unscored": row.unscored,
        "references_before": row.references_before,
        "score_before": row.score_before,
        "score_after": row.score_after,
        "improved": row.improved,
        "signature": row.signature,
        "seconds": row.seconds,
        "submission": str(row.submission),
        "created_at": moment(row.created_at),
    }


def written_row(row: WrittenReference, pseudonyms: Mapping[int, str]) -> Row:
    """The origin of a written reference; its attempt has the same `submission`."""
    attempt = row.attempt
    return {
        "campaign": row.campaign.slug,
        "annotator": pseudonyms.get(row.member.annotator_id, f"former member {row.member.number}"),
        "arm": row.task.arm,
        "state": row.state,
        "gain": row.gain,
        "score": row.score,
        "signature": attempt.signature,
        "candidate": attempt.candidate_text,
        "candidate_source": attempt.source,
        "edited": attempt.edited,
        "unscored": attempt.unscored,
        "submission": str(attempt.submission),
        "written_at": moment(row.created_at),
        "withdrawn_at": None if row.withdrawn_at is None else moment(row.withdrawn_at),
        "reason": row.reason,
    }


def moment(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
