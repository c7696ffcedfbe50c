"""Writing campaigns from plan to end: create, change, open, pause, resume, close, delete."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, OuterRef, QuerySet, RestrictedError, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation.allocation.streams import draw
from annotation.allocation.writing import arm_at
from annotation.allocation.writing_plan import WritingPlan, opening_problems, read_writing_plan
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
from annotation.selectors.writing import writing_plan
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotThere

from . import ports
from .campaigns_units import selected_items
from .moves import move_campaign
from .plans import read_with, refused

#: What may still change once people write.
CHANGEABLE = ("name", "guidelines", "max_per_annotator", "lease_minutes")
NAME_LENGTH = 63
#: What the name of the set ends with that everybody begins from in rounds.
START = "start"
BATCH = 2000


def _parse(raw: Any) -> WritingPlan:
    return read_with(read_writing_plan, raw)


def _columns(project: Any, plan: WritingPlan) -> dict[str, Any]:
    start = ReferenceSet.objects.filter(project=project, name=plan.start_set or ORIGINAL).first()
    if start is None and plan.start_set not in ("", ORIGINAL):
        raise refused([("start_set", f"The project has no reference set “{plan.start_set}”.")])
    return {
        "slug": plan.slug,
        "name": plan.name,
        "kind": plan.kind,
        "guidelines": plan.guidelines,
        "items": plan.items,
        "options": plan.options,
        "seed": plan.seed,
        "lease_minutes": plan.lease_minutes,
        "max_per_annotator": plan.max_per_annotator,
        "evaluator": plan.evaluator,
        "corpus": plan.corpus,
        "start_set": start,
    }


def create_writing(*, user: Any, project: Any, plan: Any) -> WritingCampaign:
    """A draft from a plan (see `annotation.allocation.writing_plan`)."""
    columns = _columns(project, _parse(plan))
    try:
        with transaction.atomic():
            campaign = WritingCampaign.objects.create(
                project=project, created_by=user if getattr(user, "pk", None) else None, **columns
            )
            audit.record(verb="writing.created", project=project, actor=user, object=campaign)
    except IntegrityError as error:
        raise _taken(columns["slug"]) from error
    return campaign


def _taken(slug: str) -> Conflict:
    return Conflict(f"There is already a writing campaign “{slug}” in this project. Choose another name.")


def update_writing(*, user: Any, campaign: WritingCampaign, changes: dict[str, Any]) -> WritingCampaign:
    """Change a draft in any part, or an open campaign in what does not touch what was written."""
    try:
        with transaction.atomic():
            campaign = _locked(campaign.pk)
            if not isinstance(changes, dict):
                raise BadInput("Send an object with the fields that change.")
            fixed = sorted(set(changes) - set(CHANGEABLE))
            if fixed and campaign.state != WritingCampaign.State.DRAFT:
                raise refused([(str(name), "This is fixed once a campaign has been opened.") for name in fixed])
            before = writing_plan(campaign)
            if "options" in changes and isinstance(changes["options"], dict) and changes.get("kind") in (
                None, before["kind"],
            ):  # fmt: skip
                changes = {**changes, "options": {**before["options"], **changes["options"]}}
            elif changes.get("kind") not in (None, before["kind"]):
                before.pop("options")  # those of the other kind do not fit
            columns = _columns(campaign.project, _parse({**before, **changes}))
            for name, value in columns.items():
                setattr(campaign, name, value)
            campaign.save(update_fields=list(columns))
            audit.record(
                verb="writing.changed", project=campaign.project, actor=user, object=campaign, fields=sorted(changes)
            )
    except IntegrityError as error:
        raise _taken(str(changes.get("slug", campaign.slug))) from error
    return campaign


def lock_campaign(pk: int) -> WritingCampaign | None:
    """The campaign with project and sets, held until the end of the transaction; None where there is none. What belongs
    to it is read once it is held: PostgreSQL joins to a row that one had to wait for what was there before the wait,
    so that a set it has been given since would be none."""
    held = WritingCampaign.objects.select_for_update(no_key=True).filter(pk=pk if pk < 2**63 else 0)
    if held.values_list("pk", flat=True).first() is None:
        return None
    return WritingCampaign.objects.select_related("project", "start_set", "target_set").get(pk=pk)


def _locked(pk: int) -> WritingCampaign:
    campaign = lock_campaign(pk)
    if campaign is None:
        raise NotThere("The writing campaign was deleted meanwhile.")
    return campaign


# ---- open ---------------------------------------------------------------------------------------------------


def writing_items(campaign: WritingCampaign) -> QuerySet[Item]:
    """The items of the plan, before sampling, that need something written: with fewer references than wanted, or,
    under a constraint, with an original to write against."""
    rows = selected_items(campaign)  # type: ignore[arg-type]
    if campaign.kind == WritingCampaign.Kind.CONSTRAINT and campaign.options["constraint"] == "free":
        return rows
    own = Reference.objects.filter(item=OuterRef("pk"), set=campaign.start_set_id).order_by().values("item")
    rows = rows.annotate(there=Coalesce(Subquery(own.annotate(n=Count("pk")).values("n")), 0))
    if campaign.kind == WritingCampaign.Kind.CONSTRAINT:
        return rows.filter(there__gt=0)
    return rows.filter(there__lt=campaign.options["target"])


def estimate_writing(*, campaign: WritingCampaign) -> int:
    """For how many items the campaign will ask when it is opened."""
    count, sample = writing_items(campaign).count(), campaign.items.get("sample")
    return min(count, sample) if sample else count


def open_writing(*, user: Any, campaign: WritingCampaign) -> WritingCampaign:
    """Choose the items, begin the sets, and let people in: in one transaction."""
    with transaction.atomic():
        campaign = _locked(campaign.pk)
        if campaign.state != WritingCampaign.State.DRAFT:
            raise Conflict(f"Only a draft can be opened; this campaign is {campaign.get_state_display().lower()}.")
        problems = opening_problems(_parse(writing_plan(campaign))) + _names_problems(campaign)
        if problems:
            raise refused(problems)
        if campaign.start_set is None:
            campaign.start_set, _ = ReferenceSet.objects.get_or_create(project=campaign.project, name=ORIGINAL)
        campaign.unit_count = _write_units(campaign)
        if campaign.in_rounds:
            begin_set(campaign, tail=START)
        else:
            names = [begin_set(campaign, arm).name for arm in _arms_of_sets(campaign)]
            if len(names) == 1:
                campaign.target_set = ReferenceSet.objects.get(project=campaign.project, name=names[0])
        campaign.state = WritingCampaign.State.OPEN
        campaign.opened_at = timezone.now()
        campaign.save()
        audit.record(
            verb="writing.opened", project=campaign.project, actor=user, object=campaign, items=campaign.unit_count
        )
    return campaign


def list_opening_problems(*, campaign: WritingCampaign) -> list[str]:
    """What stands in the way of opening a draft, in words; whether there are items to write for is not asked."""
    return [text for _, text in opening_problems(_parse(writing_plan(campaign))) + _names_problems(campaign)]


def _names_problems(campaign: WritingCampaign) -> list[tuple[str, str]]:
    problems = []
    if campaign.evaluator and "scores" in campaign.options["arms"]:
        known = [name for name, _ in ports.reliability_evaluators_of(project=campaign.project)]
        if campaign.evaluator not in known:
            problems.append(("evaluator", f"There is no trained evaluator “{campaign.evaluator}” for this project."))
    if campaign.corpus and campaign.corpus not in [name for name, _ in ports.corpora_of(project=campaign.project)]:
        problems.append(("corpus", f"There is no corpus “{campaign.corpus}” for this project."))
    return problems


def _write_units(campaign: WritingCampaign) -> int:
    ids = sorted(writing_items(campaign).values_list("pk", flat=True))
    sample = campaign.items.get("sample")
    if sample:
        rng = random.Random(draw(campaign.items.get("seed", campaign.seed), "items"))
        ids = rng.sample(ids, min(sample, len(ids)))
    if not ids:
        raise BadInput(_nothing(campaign), faults=[Fault(_nothing(campaign), field="items")])
    random.Random(draw(campaign.seed, "ranks")).shuffle(ids)
    arms = campaign.options["arms"]
    by_item = campaign.options["assign"] == "item"
    rows = (
        WritingUnit(
            campaign=campaign, item_id=item, rank=rank,
            arm=arm_at(campaign.seed, arms, rank, "item") if by_item else "",
        )
        for rank, item in enumerate(ids)
    )  # fmt: skip
    WritingUnit.objects.bulk_create(rows, batch_size=BATCH)
    return len(ids)


def _nothing(campaign: WritingCampaign) -> str:
    if campaign.kind == WritingCampaign.Kind.REAM:
        return "No item of this choice has fewer references than wanted. Choose other items or a higher target."
    return "No item of this choice has an original to write against. Choose other items or another start set."


def _arms_of_sets(campaign: WritingCampaign) -> list[str]:
    """One set for all, or one for each arm where people of several arms write for the same item: what one arm adds
    must not change what another finds."""
    arms = campaign.options["arms"]
    return list(arms) if len(arms) > 1 and campaign.options["assign"] == "annotator" else [""]


def set_name(campaign: WritingCampaign, tail: str) -> str:
    return f"{campaign.slug}-{tail}"[:NAME_LENGTH] if tail else campaign.slug


def start_of(campaign: WritingCampaign) -> int | None:
    """The set that the campaign's own begin with: in rounds, where people come one after the other, the copy that was
    made when the campaign was opened, so that the start is the same for all."""
    if campaign.in_rounds:
        rows = ReferenceSet.objects.filter(project=campaign.project_id, name=set_name(campaign, START))
        for pk, meta in rows.values_list("pk", "meta"):
            if (meta.get("origin"), meta.get("campaign")) == ("writing", campaign.slug):
                return int(pk)
    return campaign.start_set_id


def begin_set(campaign: WritingCampaign, arm: str = "", annotator: str = "", *, tail: str = "") -> ReferenceSet:
    """A new set of the campaign with the references it begins from, or Conflict when the name is taken."""
    name, start = set_name(campaign, tail or annotator or arm), start_of(campaign)
    meta = {"origin": "writing", "campaign": campaign.slug, "kind": campaign.kind}
    meta |= {key: value for key, value in (("arm", arm), ("annotator", annotator)) if value}
    if campaign.kind == WritingCampaign.Kind.REAM and campaign.start_set:
        meta["start"] = campaign.start_set.name
    found, is_new = ReferenceSet.objects.get_or_create(project=campaign.project, name=name, defaults={"meta": meta})
    if not is_new:
        raise Conflict(f"There is already a reference set “{name}” in this project. Give the campaign another slug.")
    if campaign.kind == WritingCampaign.Kind.REAM:
        Reference.objects.bulk_create(_copies(campaign, start, found), batch_size=BATCH)
    return found


def _copies(campaign: WritingCampaign, start: int | None, target: ReferenceSet) -> Iterator[Reference]:
    items = WritingUnit.objects.filter(campaign=campaign).values("item")
    rows = Reference.objects.filter(set=start, item__in=items).order_by("item_id", "position")
    for item, position, text, meta in rows.values_list("item_id", "position", "text", "meta").iterator(BATCH):
        yield Reference(set=target, item_id=item, position=position, text=text, meta=meta)


# ---- move and end -------------------------------------------------------------------------------------------


def pause_writing(*, user: Any, campaign: WritingCampaign) -> WritingCampaign:
    """Nobody gets a new item; what is open can still be written."""
    return move_campaign(campaign=campaign, user=user, move="pause", noun="writing")


def resume_writing(*, user: Any, campaign: WritingCampaign) -> WritingCampaign:
    return move_campaign(campaign=campaign, user=user, move="resume", noun="writing")


def close_writing(*, user: Any, campaign: WritingCampaign) -> WritingCampaign:
    """Nothing is added any more; what was typed stays as a draft."""
    return move_campaign(campaign=campaign, user=user, move="close", noun="writing")


def delete_writing(*, user: Any, campaign: WritingCampaign) -> None:
    """A campaign in which nobody wrote can go, with its sets; what was written is never deleted with it."""
    with transaction.atomic():
        campaign = _locked(campaign.pk)
        if WritingAttempt.objects.filter(campaign=campaign).exists():
            raise Conflict("People have written in this campaign, so it stays. Close it instead.")
        audit.record(verb="writing.deleted", project=campaign.project, actor=user, object=campaign)
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
            raise Conflict(
                "Another writing campaign begins from the references of this one, so it stays. Delete the other "
                "first, or close this one instead."
            ) from error
