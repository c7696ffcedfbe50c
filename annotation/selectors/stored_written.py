"""Stored reference sets and written texts, for the comparison with an import of references.jsonl and attempts.jsonl. A
fixed number of queries per batch."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q

from annotation.models import (
    AttemptElsewhere,
    Reference,
    ReferenceSet,
    WritingAttempt,
    WritingCampaign,
    WrittenElsewhere,
    WrittenReference,
)
from annotation.models.data import ORIGINAL
from annotation.parsers.writer import COLUMNS, WRITTEN, encode_ordered
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import rater_names

from .stored import as_text
from .writing_rows import make_attempt_row, make_written_row, select_parts


class StoredSet(NamedTuple):
    """`made_here`: not created by an upload. `written_from`: a writing campaign starts from it or adds to it."""

    id: int
    made_here: bool
    written_from: bool


@dataclass
class StoredReference:
    """`own` is the origin of a text that was written here, `former` the same in the form of older exports if its
    annotator has left the project; `told` is the origin from another installation."""

    id: int
    text: str
    meta: str
    own: str | None = None
    former: str | None = None
    told: str | None = None
    told_id: int | None = None


class Elsewhere(NamedTuple):
    id: int
    set: int
    item: int
    reference: int | None
    text: str
    meta: str
    told: str


class WrittenHere(NamedTuple):
    """A text written here, by its submission; `reference` is null while it is not in its set. `former` as in
    `StoredReference`."""

    set: int
    item: int
    reference: int | None
    text: str
    meta: dict[str, Any]
    told: str
    former: str


def sets(project: Project) -> dict[str, StoredSet]:
    campaigns = WritingCampaign.objects.filter(project=project).values_list("start_set", "target_set")
    used = {pk for pair in campaigns for pk in pair}
    rows = ReferenceSet.objects.filter(project=project).exclude(name=ORIGINAL)
    return {
        name: StoredSet(pk, upload is None, pk in used) for name, pk, upload in rows.values_list("name", "id", "upload")
    }


def references(project: Project, sets: Collection[int], items: Collection[int]) -> dict[tuple, StoredReference]:
    """References by (set, item, position)."""
    rows = Reference.objects.filter(set__in=sets, item__in=items)
    columns = rows.values_list("set", "item", "position", "id", "text", as_text("meta"))
    references_by_key = {tuple(row[:3]): StoredReference(*row[3:]) for row in columns}
    by_id = {row.id: row for row in references_by_key.values()}
    for far in WrittenElsewhere.objects.filter(reference__in=list(by_id)):
        by_id[far.reference_id].told, by_id[far.reference_id].told_id = far.told, far.pk  # type: ignore[index]
    pseudonyms = rater_names(project.pk)
    parts = ("campaign", "task", "member", "attempt")
    for written in WrittenReference.objects.filter(reference__in=list(by_id)).select_related(*parts):
        row = by_id[written.reference_id]  # type: ignore[index]
        row.own, row.former = _written(written, pseudonyms), _written(written, {})
    return references_by_key


def _written(written: WrittenReference, pseudonyms: Mapping[int, str]) -> str:
    """Annotators without a pseudonym are former members."""
    return encode_ordered(make_written_row(written, pseudonyms), WRITTEN)


def elsewhere(project: Project, submissions: Collection[str]) -> dict[str, Elsewhere]:
    rows = WrittenElsewhere.objects.filter(project=project, submission__in=submissions)
    columns = rows.values_list("submission", "id", "set", "item", "reference", "text", as_text("meta"), "told")
    return {row[0]: Elsewhere(*row[1:]) for row in columns}


def own(project: Project, submissions: Collection[str]) -> dict[str, WrittenHere]:
    rows = WrittenReference.objects.filter(campaign__project=project, attempt__submission__in=_uuids(submissions))
    pseudonyms = rater_names(project.pk)
    return {
        str(row.attempt.submission): WrittenHere(
            row.set_id, row.unit.item_id, row.reference_id, row.text, row.meta,
            _written(row, pseudonyms), _written(row, {}),
        )
        for row in rows.select_related("campaign", "task", "member", "attempt", "unit")
    }  # fmt: skip


def attempts(
    project: Project, submissions: Collection[str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[int, str]]]:
    """Attempts made here, in their current form and in that of older exports for former members, and (id, row) of
    imported attempts, by submission."""
    pseudonyms = rater_names(project.pk)
    here = WritingAttempt.objects.filter(campaign__project=project, submission__in=_uuids(submissions))
    rows = {
        str(row.submission): tuple(
            encode_ordered(make_attempt_row(row, names), COLUMNS["attempts"]) for names in (pseudonyms, {})
        )
        for row in select_parts(here)
    }
    far = AttemptElsewhere.objects.filter(project=project, submission__in=submissions)
    return rows, {submission: (pk, row) for submission, pk, row in far.values_list("submission", "id", "row")}


def has_any(project: Project) -> bool:
    """Whether anything is stored that a row of the two files could match or contradict."""
    named = ReferenceSet.objects.filter(Q(project=project) & ~Q(name=ORIGINAL))
    return named.exists() or any(
        rows.exists()
        for rows in (
            AttemptElsewhere.objects.filter(project=project), WritingCampaign.objects.filter(project=project),
        )
    )  # fmt: skip


def _uuids(submissions: Collection[str]) -> list[UUID]:
    """Those that have the form of this installation's UUIDs."""
    uuids = []
    for text in submissions:
        try:
            number = UUID(text)
        except ValueError:
            continue
        if str(number) == text:
            uuids.append(number)
    return uuids
