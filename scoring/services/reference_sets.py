"""Merge and delete reference sets. Only uploads change `original`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError, RestrictedError
from django.utils.translation import gettext as _

from annotation.models import Reference, ReferenceSet, WritingCampaign
from annotation.models.data import ORIGINAL
from annotation.services.writing_plans import get_start_set_id
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import Run
from evalapp.stored_texts import translate_stored

from ..models import ScoreSet
from ..selectors.reference_sets import get_set
from .reference_selection import NewSet, check_name, store_reference_sets

#: Maximum number of references merged within a request.
MAX_MERGED = 200_000


def merge_sets(*, project: Project, user: Any = None, names: Sequence[str], into: str) -> ReferenceSet:
    """Create a set with the references of all sets, each text once per item, in the order of the names."""
    names = list(dict.fromkeys(names))
    if len(names) < 2:
        raise BadInput.for_field("merge", _("Name at least two sets to merge."))
    check_name(project, into)
    rows = [get_set(project, name) for name in names]
    total = sum(row.n_references for row in rows)
    if total > MAX_MERGED:
        text = _(
            "The sets have %(total)s references together; at most %(limit)s can be merged. Merge smaller sets, or "
            "select references with --start all."
        )
        raise BadInput(text % {"total": f"{total:,}", "limit": f"{MAX_MERGED:,}"})
    meta = {
        "kind": "merge",
        "of": names,
        "holds_judged_outputs": any(row.meta.get("holds_judged_outputs") for row in rows),
    }
    sets = [row.set for row in rows if row.set.pk]
    with transaction.atomic():
        (made,) = store_reference_sets(
            project=project, actor=user, sets=[NewSet(into, meta, _merge([row.pk for row in sets]))]
        )
        if not made.references.exists():
            raise BadInput(_("None of %(names)s has a reference.") % {"names": ", ".join(names)})
    return made


def _merge(sets: list[int]) -> Iterator[tuple[int, int, str, dict[str, Any]]]:
    order = {pk: place for place, pk in enumerate(sets)}
    rows = (
        Reference.objects.filter(set__in=sets).order_by("item").values_list("item", "set", "position", "text", "meta")
    )
    # All rows are read before the first is written: an open cursor could return new rows.
    for item, group in groupby(list(rows), key=lambda row: row[0]):
        metas: dict[str, dict[str, Any]] = {}
        for *_place, text, meta in sorted(group, key=lambda row: (order[row[1]], row[2])):
            metas.setdefault(text, meta)
        for position, (text, meta) in enumerate(metas.items()):
            yield item, position, text, meta


def delete_set(*, project: Project, user: Any = None, name: str, with_scores: bool = False) -> None:
    """Delete a set with its references and traces, and with `with_scores` the scores that were computed with it."""
    if name == ORIGINAL:
        raise Conflict(_("The set original contains the uploaded references. Undo the upload instead."))
    row = get_set(project, name)
    _check_unused(project, row.set)
    if row.score_sets and not with_scores:
        names = ", ".join(dict.fromkeys(s.evaluator.slug for s in row.score_sets))
        text = _("%(n)s scores by %(names)s were computed with %(set)s. Confirm that they are deleted with it.")
        raise Conflict(text % {"n": f"{row.n_scores:,}", "names": names, "set": name})
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
        text = _("%(set)s is used by %(names)s. Delete these first.")
        raise Conflict(text % {"set": name, "names": ", ".join(campaigns[:5])}) from error


def _check_unused(project: Project, row: ReferenceSet) -> None:
    """Raise `Conflict` if an open writing campaign starts with the set, or an active run uses it."""
    if row.meta.get("origin") == "writing":
        rows = WritingCampaign.objects.filter(project=project, slug=row.meta.get("campaign", ""))
        for campaign in rows.exclude(state=WritingCampaign.State.CLOSED):
            if campaign.in_rounds and get_start_set_id(campaign) == row.pk:
                text = _(
                    "All annotators who join the writing campaign “%(campaign)s” start with %(set)s. Close the "
                    "campaign first."
                )
                raise Conflict(text % {"campaign": campaign.name, "set": row.name})
    for run in Run.objects.filter(project=project, state__in=Run.ACTIVE):
        if row.name in _list_sets(run.params):
            text = _("Run %(run)s (%(title)s) uses %(set)s. Cancel it first, or wait for its end.")
            raise Conflict(text % {"run": run.pk, "title": translate_stored(run.title), "set": row.name})


def _list_sets(params: dict[str, Any]) -> set[str]:
    """Return the reference sets that the parameters of a run name."""
    data = params.get("data")
    names = [params.get("references"), params.get("into"), data.get("references") if isinstance(data, dict) else None]
    return {name for name in names if isinstance(name, str)}
