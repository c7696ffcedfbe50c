"""Merging and deleting reference sets. `original` belongs to uploads alone and is never touched here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError, RestrictedError

from annotation.models import Reference, ReferenceSet, WritingCampaign
from annotation.models.data import ORIGINAL
from annotation.services.writing_plans import get_start_set_id
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.models import Run

from ..models import ScoreSet
from ..selectors.reference_sets import get_set
from .annotating import NewSet, check_name, store_reference_sets

#: References that are merged while somebody waits for the page.
MOST_MERGED = 200_000


def merge_sets(*, project: Project, user: Any = None, names: Sequence[str], into: str) -> ReferenceSet:
    """A new set with the references of all, each text once per item, in the order of the names."""
    names = list(dict.fromkeys(names))
    if len(names) < 2:
        raise BadInput("Name two or more sets to be merged.", faults=[Fault("two or more", field="merge")])
    check_name(project, into)
    rows = [get_set(project, name) for name in names]
    total = sum(row.n_references for row in rows)
    if total > MOST_MERGED:
        raise BadInput(
            f"The sets have {total:,} references together; up to {MOST_MERGED:,} can be merged. Merge smaller ones, or "
            "annotate with --start all."
        )
    meta = {
        "kind": "merge",
        "of": names,
        "holds_judged_outputs": any(row.meta.get("holds_judged_outputs") for row in rows),
    }
    sets = [row.set for row in rows if row.set.pk]
    with transaction.atomic():
        (made,) = store_reference_sets(
            project=project, actor=user, sets=[NewSet(into, meta, _merged([row.pk for row in sets]))]
        )
        if not made.references.exists():
            raise BadInput(f"None of {', '.join(names)} has a reference.")
    return made


def _merged(sets: list[int]) -> Iterator[tuple[int, int, str, dict[str, Any]]]:
    order = {pk: place for place, pk in enumerate(sets)}
    rows = (
        Reference.objects.filter(set__in=sets).order_by("item").values_list("item", "set", "position", "text", "meta")
    )
    # Read before anything is written: a cursor that is open while rows come in may meet them.
    for item, group in groupby(list(rows), key=lambda row: row[0]):
        kept: dict[str, dict[str, Any]] = {}
        for _, _, _, text, meta in sorted(group, key=lambda row: (order[row[1]], row[2])):
            kept.setdefault(text, meta)
        for position, (text, meta) in enumerate(kept.items()):
            yield item, position, text, meta


def delete_set(*, project: Project, user: Any = None, name: str, with_scores: bool = False) -> None:
    """The set with its references and traces. Scores that were made with it go only when somebody said so."""
    if name == ORIGINAL:
        raise Conflict("The set original holds what was uploaded. Undo the upload instead.")
    row = get_set(project, name)
    for campaign in _campaigns_of(row.set):
        if campaign.in_rounds and get_start_set_id(campaign) == row.set.pk:
            raise Conflict(
                f"Whoever joins the writing campaign “{campaign.name}” begins from {name}, so that all begin from the "
                "same. Close the campaign first."
            )
    busy = [run for run in Run.objects.filter(project=project, state__in=Run.ACTIVE) if name in _sets_of(run.params)]
    if busy:
        raise Conflict(f"Run {busy[0].pk} ({busy[0].title}) is using {name}. Cancel it first, or wait for it.")
    if row.score_sets and not with_scores:
        by = ", ".join(dict.fromkeys(s.evaluator.slug for s in row.score_sets))
        raise Conflict(
            f"{row.n_scores:,} scores were made with {name}: by {by}. Say that they go with it, or keep the set."
        )
    try:
        with transaction.atomic():
            ScoreSet.objects.filter(project=project, references=name).delete()
            audit.record(
                verb="references.deleted", project=project, actor=user, object=row.set,
                n_references=row.n_references, n_scores=row.n_scores, meta=row.meta,
            )  # fmt: skip
            row.set.delete()
    except (RestrictedError, ProtectedError) as error:
        users = getattr(error, "restricted_objects", None) or getattr(error, "protected_objects", None) or ()
        campaigns = sorted({str(getattr(user, "campaign", user)) for user in users})
        raise Conflict(f"{name} is used by {', '.join(campaigns[:5])}. Delete what uses it first.") from error


def _campaigns_of(row: ReferenceSet) -> Iterator[WritingCampaign]:
    """The writing campaign that made the set, unless it is closed."""
    if row.meta.get("origin") == "writing":
        rows = WritingCampaign.objects.filter(project=row.project_id, slug=row.meta.get("campaign", ""))
        yield from rows.exclude(state=WritingCampaign.State.CLOSED)


def _sets_of(params: dict[str, Any]) -> set[str]:
    """The reference sets that a run's parameters name."""
    data = params.get("data") if isinstance(params.get("data"), dict) else {}
    found = [params.get("references"), params.get("into"), (data or {}).get("references")]
    return {name for name in found if isinstance(name, str)}
