"""The part of writing in the life cycle of campaigns: items to write for, reference sets, and opening."""

import random
from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, RestrictedError, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.streams import draw
from annotation.allocation.writing import choose_arm
from annotation.allocation.writing_plan import WritingPlan, find_opening_problems, read_writing_plan
from annotation.models import (
    Item,
    Reference,
    ReferenceSet,
    WritingAttempt,
    WritingCampaign,
    WritingMember,
    WritingTask,
    WritingUnit,
)
from annotation.models.data import ORIGINAL
from annotation.selectors.writing import make_writing_plan
from evalapp.accounts.models import Project, User
from evalapp.common.errors import BadInput, Conflict

from . import hooks
from .campaign_work import CampaignWork, reject_plan
from .campaigns_units import select_items

NAME_LENGTH = 63
#: In rounds, the suffix of the name of the set that all annotators start from.
START = "start"
BATCH = 2000


class WritingWork(CampaignWork[WritingCampaign, WritingPlan]):
    model = WritingCampaign
    related = ("start_set", "target_set")
    verb = "writing"
    changeable = ("name", "guidelines", "max_per_annotator", "lease_minutes")
    read_plan = staticmethod(read_writing_plan)
    delete_refusal = gettext_lazy("The campaign has written texts, so it cannot be deleted. Close it instead.")

    def current_plan(self, campaign: WritingCampaign) -> dict[str, Any]:
        return make_writing_plan(campaign)

    def merge_changes(self, before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
        if changes.get("kind") not in (None, before["kind"]):
            before = {name: value for name, value in before.items() if name != "options"}  # they differ by kind
        return super().merge_changes(before, changes)

    def own_columns(self, project: Project, plan: WritingPlan) -> dict[str, Any]:
        start = ReferenceSet.objects.filter(project=project, name=plan.start_set or ORIGINAL).first()
        if start is None and plan.start_set not in ("", ORIGINAL):
            message = _("The project has no reference set “%(name)s”.") % {"name": plan.start_set}
            raise reject_plan([("start_set", message)])
        return {"items": plan.items, "evaluator": plan.evaluator, "corpus": plan.corpus, "start_set": start}

    def open(self, campaign: WritingCampaign, user: User | None, **_how: Any) -> WritingCampaign:
        with transaction.atomic():
            campaign = self.lock(campaign.pk)
            self.check_draft(campaign)
            problems = _find_opening_problems(campaign)
            if problems:
                raise reject_plan(problems)
            if campaign.start_set is None:
                campaign.start_set = ReferenceSet.objects.get_or_create(project=campaign.project, name=ORIGINAL)[0]
            campaign.unit_count = _write_units(campaign)
            if campaign.in_rounds:
                begin_set(campaign, tail=START)
            else:
                names = [begin_set(campaign, arm).name for arm in _list_set_arms(campaign)]
                if len(names) == 1:
                    campaign.target_set = ReferenceSet.objects.get(project=campaign.project, name=names[0])
            campaign.state = WritingCampaign.State.OPEN
            campaign.opened_at = timezone.now()
            campaign.save()
            self.record("opened", campaign, user, items=campaign.unit_count)
        return campaign

    def has_answers(self, campaign: WritingCampaign) -> bool:
        return WritingAttempt.objects.filter(campaign=campaign).exists()

    def delete_rows(self, campaign: WritingCampaign) -> None:
        """Delete the campaign together with its reference sets."""
        sets = set(WritingMember.objects.filter(campaign=campaign).values_list("set", flat=True))
        sets |= {
            row.pk
            for row in ReferenceSet.objects.filter(project=campaign.project, name__startswith=campaign.slug)
            if row.meta.get("campaign") == campaign.slug and row.meta.get("origin") == "writing"
        }
        WritingTask.objects.filter(campaign=campaign).delete()
        campaign.delete()
        try:
            ReferenceSet.objects.filter(pk__in=sets).delete()
        except RestrictedError as error:
            message = _(
                "Another writing campaign starts from the references of this one, so it cannot be deleted. Delete the "
                "other one first, or close this one instead."
            )
            raise Conflict(message) from error


WRITING = WritingWork()


# ---- opening ----------------------------------------------------------------------------------------------


def select_writing_items(campaign: WritingCampaign) -> QuerySet[Item]:
    """The items of the plan that need a text, before sampling: those with fewer references than the target or, under a
    constraint, those with an original."""
    rows = select_items(campaign)  # type: ignore[arg-type]
    if campaign.kind == WritingCampaign.Kind.CONSTRAINT and campaign.options["constraint"] == "free":
        return rows
    originals = Reference.objects.filter(item=OuterRef("pk"), set=campaign.start_set_id).order_by().values("item")
    rows = rows.annotate(there=Coalesce(Subquery(originals.annotate(n=Count("pk")).values("n")), 0))
    if campaign.kind == WritingCampaign.Kind.CONSTRAINT:
        return rows.filter(there__gt=0)
    return rows.filter(there__lt=campaign.options["target"])


def estimate_writing(*, campaign: WritingCampaign) -> int:
    """The number of items that the campaign will have when it is opened."""
    count, sample = select_writing_items(campaign).count(), campaign.items.get("sample")
    return min(count, sample) if sample else count


def list_opening_problems(*, campaign: WritingCampaign) -> list[str]:
    """Messages on what prevents opening a draft, except that there may be no items to write for."""
    return [message for _field, message in _find_opening_problems(campaign)]


def _find_opening_problems(campaign: WritingCampaign) -> list[tuple[str, str]]:
    problems = find_opening_problems(WRITING.parse_plan(make_writing_plan(campaign)))
    needs_evaluator = campaign.evaluator and "scores" in campaign.options["arms"]
    if needs_evaluator and campaign.evaluator not in dict(hooks.list_reliability_evaluators(project=campaign.project)):
        message = _("There is no trained evaluator “%(name)s” for this project.") % {"name": campaign.evaluator}
        problems.append(("evaluator", message))
    if campaign.corpus and campaign.corpus not in dict(hooks.list_corpora(project=campaign.project)):
        problems.append(("corpus", _("There is no corpus “%(name)s” for this project.") % {"name": campaign.corpus}))
    return problems


def _write_units(campaign: WritingCampaign) -> int:
    ids = sorted(select_writing_items(campaign).values_list("pk", flat=True))
    sample = campaign.items.get("sample")
    if sample:
        rng = random.Random(draw(campaign.items.get("seed", campaign.seed), "items"))
        ids = rng.sample(ids, min(sample, len(ids)))
    if not ids:
        raise BadInput.for_field("items", _explain_no_items(campaign))
    random.Random(draw(campaign.seed, "ranks")).shuffle(ids)
    arms = campaign.options["arms"]
    by_item = campaign.options["assign"] == "item"
    rows = (
        WritingUnit(
            campaign=campaign, item_id=item, rank=rank,
            arm=choose_arm(campaign.seed, arms, rank, "item") if by_item else "",
        )
        for rank, item in enumerate(ids)
    )  # fmt: skip
    WritingUnit.objects.bulk_create(rows, batch_size=BATCH)
    return len(ids)


def _explain_no_items(campaign: WritingCampaign) -> str:
    if campaign.kind == WritingCampaign.Kind.REAM:
        return _("All selected items have enough references already. Select other items or raise the target.")
    return _("None of the selected items has an original. Select other items or another start set.")


def _list_set_arms(campaign: WritingCampaign) -> list[str]:
    """The arms that have their own reference set. If annotators of multiple arms write for the same item, the texts of
    one arm must not affect another; otherwise all share one set."""
    arms = campaign.options["arms"]
    return list(arms) if len(arms) > 1 and campaign.options["assign"] == "annotator" else [""]


def make_set_name(campaign: WritingCampaign, suffix: str) -> str:
    return f"{campaign.slug}-{suffix}"[:NAME_LENGTH] if suffix else campaign.slug


def get_start_set_id(campaign: WritingCampaign) -> int | None:
    """The reference set that the campaign's sets are copied from. In rounds, annotators join at different times, so
    they start from the copy that was made when the campaign was opened."""
    if campaign.in_rounds:
        rows = ReferenceSet.objects.filter(project=campaign.project_id, name=make_set_name(campaign, START))
        for pk, meta in rows.values_list("pk", "meta"):
            if (meta.get("origin"), meta.get("campaign")) == ("writing", campaign.slug):
                return int(pk)
    return campaign.start_set_id


def begin_set(campaign: WritingCampaign, arm: str = "", annotator: str = "", *, tail: str = "") -> ReferenceSet:
    """Create a reference set for the campaign with copies of the references it starts from; Conflict if the name is
    taken."""
    name, start = make_set_name(campaign, tail or annotator or arm), get_start_set_id(campaign)
    meta = {"origin": "writing", "campaign": campaign.slug, "kind": campaign.kind}
    meta |= {key: value for key, value in (("arm", arm), ("annotator", annotator)) if value}
    if campaign.kind == WritingCampaign.Kind.REAM and campaign.start_set:
        meta["start"] = campaign.start_set.name
    created, is_new = ReferenceSet.objects.get_or_create(project=campaign.project, name=name, defaults={"meta": meta})
    if not is_new:
        message = _("There is already a reference set “%(name)s” in this project. Give the campaign another slug.")
        raise Conflict(message % {"name": name})
    if campaign.kind == WritingCampaign.Kind.REAM:
        Reference.objects.bulk_create(_copy_references(campaign, start, created), batch_size=BATCH)
    return created


def _copy_references(campaign: WritingCampaign, start: int | None, target: ReferenceSet) -> Iterator[Reference]:
    items = WritingUnit.objects.filter(campaign=campaign).values("item")
    rows = Reference.objects.filter(set=start, item__in=items).order_by("item_id", "position")
    for item, position, text, meta in rows.values_list("item_id", "position", "text", "meta").iterator(BATCH):
        yield Reference(set=target, item_id=item, position=position, text=text, meta=meta)
