"""Candidates that were offered to annotators. They are stored, so that attempts refer to them by a public id and their
origin is known."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from annotation.allocation.texts import is_storable
from annotation.allocation.writing import draw_order, same_text
from annotation.models import Output, Reference, WritingCandidate, WritingTask, WritingUnit

from . import hooks
from .hooks import Candidate, Candidates
from .writing_plans import get_start_set_id


def _opaque(*parts: object) -> str:
    return salted_hmac("annotation.writing", "/".join(map(str, parts)), algorithm="sha256").hexdigest()[:24]


def remember_candidates(*, task: WritingTask, rows: Sequence[Candidate]) -> list[str]:
    """Store the candidates and return their public ids, in order. The same text in the same task has the same id."""
    ids = [_opaque("task", task.public, row.text) for row in rows]
    WritingCandidate.objects.bulk_create(
        [
            WritingCandidate(
                campaign_id=task.campaign_id, unit_id=task.unit_id, task=task, public=public, text=row.text,
                query=row.query, jaccard=row.jaccard, source=dict(row.source),
            )
            for public, row in zip(ids, rows, strict=True)
        ],
        ignore_conflicts=True,
    )  # fmt: skip
    return ids


def fetch_round_candidates(task: WritingTask) -> tuple[int, str]:
    """The number of candidates of the item in rounds, fetched on the first call: one list for all groups, in an order
    drawn from the campaign's seed. If there are none, the note gives the reason, and the next call tries again."""
    rows = WritingCandidate.objects.filter(unit=task.unit_id, task=None)
    count = rows.count()
    if count:
        return count, ""
    candidates = _fetch(task)
    if not candidates.rows:
        return 0, candidates.note or _("The corpus has no candidates for this item.")
    order = draw_order(task.campaign.seed, task.unit.item.key, len(candidates.rows))
    with transaction.atomic():
        WritingUnit.objects.select_for_update(no_key=True).get(pk=task.unit_id)
        if not rows.exists():
            WritingCandidate.objects.bulk_create(
                WritingCandidate(
                    campaign_id=task.campaign_id, unit_id=task.unit_id, number=number,
                    public=_opaque("unit", task.unit_id, number), text=candidates.rows[place].text,
                    query=candidates.rows[place].query, jaccard=candidates.rows[place].jaccard,
                    source=dict(candidates.rows[place].source),
                )
                for number, place in enumerate(order)
            )  # fmt: skip
        return rows.count(), ""


def _fetch(task: WritingTask) -> Candidates:
    """Search the corpus, without references that the set starts with and outputs of the item."""
    campaign, item = task.campaign, task.unit.item
    start = Reference.objects.filter(item=item, set=get_start_set_id(campaign)).values_list("text", flat=True)
    outputs = Output.objects.filter(item=item).values_list("text", flat=True)
    exclude = (*start, *outputs)
    candidates = hooks.find_candidates(
        project=campaign.project, corpus=campaign.corpus, item=item, k=campaign.options["candidates"],
        turns=campaign.options["candidate_turns"], exclude=exclude,
    )  # fmt: skip
    taken = {same_text(text) for text in exclude}
    rows = []
    for row in candidates.rows:
        if (form := same_text(row.text)) not in taken:
            taken.add(form)
            rows.append(row)
    return Candidates(tuple(rows), candidates.note)


def find_round_candidate(task: WritingTask) -> WritingCandidate | None:
    """The candidate of the current round; None after the last one."""
    return WritingCandidate.objects.filter(unit=task.unit_id, task=None, number=task.round).first()


def find_candidate(task: WritingTask, public: str) -> WritingCandidate | None:
    """A candidate that was offered in this task."""
    if not is_storable(public):  # PostgreSQL rejects such a query
        return None
    row = WritingCandidate.objects.filter(public=public, unit=task.unit_id).first()
    return row if row is not None and row.task_id in (None, task.pk) else None
