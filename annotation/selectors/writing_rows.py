"""Attempts and written references as flat rows with their origin, for the API and exports. People appear under
pseudonyms."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from annotation.models import WritingAttempt, WritingCampaign, WritingMember, WrittenReference
from annotation.parsers.writer import COLUMNS, WRITTEN

from .attributes import read_attributes

Row = dict[str, Any]


def list_attempts(*, campaign: WritingCampaign) -> QuerySet[WritingAttempt]:
    """Attempts of a campaign, newest first, with the relations that `make_attempt_row` needs."""
    rows = WritingAttempt.objects.filter(campaign=campaign)
    return select_parts(rows).order_by("-pk")


def select_parts(rows: QuerySet[WritingAttempt]) -> QuerySet[WritingAttempt]:
    return rows.select_related("campaign", "task__unit__item", "member__set")


def make_attempt_row(row: WritingAttempt, pseudonyms: Mapping[int, str]) -> Row:
    derived = {
        "campaign": row.campaign.slug,
        "item": row.task.unit.item.key,
        "annotator": _name(row.member, pseudonyms),
        "arm": row.task.arm,
        "annotator_group": row.member.group,
        "set": row.member.set.name,
        "candidate": row.candidate_text,
        "candidate_source": row.source,
        "submission": str(row.submission),
        "created_at": moment(row.created_at),
    }
    return {name: derived[name] if name in derived else getattr(row, name) for name in COLUMNS["attempts"]}


def make_written_row(row: WrittenReference, pseudonyms: Mapping[int, str]) -> Row:
    """The origin of a written reference; its attempt has the same `submission`."""
    attempt = row.attempt
    derived = {
        **read_attributes(attempt, "signature edited unscored"),
        "campaign": row.campaign.slug,
        "annotator": _name(row.member, pseudonyms),
        "arm": row.task.arm,
        "candidate": attempt.candidate_text,
        "candidate_source": attempt.source,
        "submission": str(attempt.submission),
        "written_at": moment(row.created_at),
        "withdrawn_at": None if row.withdrawn_at is None else moment(row.withdrawn_at),
    }
    return {name: derived[name] if name in derived else getattr(row, name) for name in WRITTEN}


def _name(member: WritingMember, pseudonyms: Mapping[int, str]) -> str:
    return pseudonyms.get(member.annotator_id, f"former member {member.number}")


def moment(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
