"""Campaigns from plan to end: create, change, open, pause, resume, close, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import F, Max, Q
from django.utils import timezone

from annotation.allocation.answers import AspectForm
from annotation.allocation.plan import Check, Plan, read_plan
from annotation.models import (
    Aspect,
    Assignment,
    Campaign,
    CampaignAspect,
    Item,
    Judgement,
    Output,
    Rating,
    Reference,
    System,
    Unit,
)
from annotation.models.data import OBSERVED, ORIGINAL, STATED
from annotation.selectors.campaigns import campaign_plan
from evalapp.common import audit
from evalapp.common.errors import Conflict
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run

from .campaigns_units import HERE_AT_MOST, choose_units, estimate_units, no_units, write_units
from .moves import Move, move_campaign
from .plans import read_with, refused

#: The lock of those who open campaigns, beside the number of the project.
OPENING = 0x6F70656E
#: What may still change once people judge.
CHANGEABLE = ("name", "guidelines", "max_per_annotator", "lease_minutes", "options")


def parse_plan(raw: Any) -> Plan:
    return read_with(read_plan, raw)


def create_campaign(*, project: Any, user: Any, plan: Any) -> Campaign:
    """A draft from a plan (see `annotation.allocation.plan`)."""
    parsed = parse_plan(plan)
    try:
        with transaction.atomic():
            campaign = Campaign.objects.create(
                project=project,
                created_by=user if getattr(user, "pk", None) else None,
                **_columns(parsed),
            )
            _write_plan(campaign, parsed)
            audit.record(verb="campaign.created", project=project, actor=user, object=campaign)
    except IntegrityError as error:
        raise Conflict(f"There is already a campaign “{parsed.slug}” in this project. Choose another name.") from error
    return campaign


def _columns(plan: Plan) -> dict[str, Any]:
    return {
        "slug": plan.slug,
        "name": plan.name,
        "kind": plan.kind,
        "overlap": plan.overlap,
        "lease_minutes": plan.lease_minutes,
        "max_per_annotator": plan.max_per_annotator,
        "guidelines": plan.guidelines,
        "plan": plan.selection.as_dict(),
        "options": plan.options,
        "seed": plan.seed,
    }


def _write_plan(campaign: Campaign, plan: Plan) -> None:
    """Aspects and checks of a draft, anew."""
    _check_systems(campaign, plan)
    campaign.aspects.all().delete()
    for position, form in enumerate(plan.aspects):
        CampaignAspect.objects.create(
            campaign=campaign,
            aspect=_aspect(campaign, form, f"aspects[{position}]"),
            position=position,
            question=form.question,
            low=form.low,
            high=form.high,
            step=form.step,
            labels=dict(form.labels or {}),
        )
    campaign.units.all().delete()
    Unit.objects.bulk_create(
        [
            *_checks(campaign, plan.practice, Unit.Kind.PRACTICE.value, "practice"),
            *_checks(campaign, plan.controls, Unit.Kind.CONTROL.value, "controls"),
        ]
    )


def _check_systems(campaign: Campaign, plan: Plan) -> None:
    names = [name for name, _ in plan.selection.systems]
    known = set(System.objects.filter(project=campaign.project_id, name__in=names).values_list("name", flat=True))
    problems = [("systems", f"The project has no system “{name}”.") for name in names if name not in known]
    if problems:
        raise refused(problems)


def _aspect(campaign: Campaign, form: AspectForm, where: str) -> Aspect:
    """The project's aspect of this name; its scale must be the same, because ratings are pooled by aspect. A scale that
    is only what the ratings of uploads show is stated by the plan."""
    last = Aspect.objects.filter(project=campaign.project_id).aggregate(last=Max("position"))["last"]
    aspect, _ = Aspect.objects.get_or_create(
        project_id=campaign.project_id,
        name=form.name,
        defaults={"low": form.low, "high": form.high, "position": 0 if last is None else last + 1},
    )
    if form.low is None or (aspect.low, aspect.high) == (form.low, form.high):
        return aspect
    if aspect.low is None or _is_unused(aspect, campaign) or _may_be_stated(aspect, campaign, form):
        aspect.low, aspect.high = form.low, form.high
        aspect.save(update_fields=["low", "high"])
    else:
        raise refused(
            [
                (
                    f"{where}.low",
                    f"“{form.name}” is rated from {aspect.low:g} to {aspect.high:g} in this project, so it cannot be "
                    f"rated from {form.low:g} to {form.high:g} here. " + _way_out(aspect, campaign),
                )
            ]
        )
    return aspect


def _is_unused(aspect: Aspect, campaign: Campaign) -> bool:
    """Whether its scale is only what an earlier plan of this campaign, or of one that is gone, had said."""
    if aspect.upload_id is not None or aspect.meta or _asked_elsewhere(aspect, campaign):
        return False
    return not Rating.objects.filter(aspect=aspect).exists()


def _asked_elsewhere(aspect: Aspect, campaign: Campaign) -> bool:
    return CampaignAspect.objects.filter(aspect=aspect, low__isnull=False).exclude(campaign=campaign).exists()


def _may_be_stated(aspect: Aspect, campaign: Campaign, form: AspectForm) -> bool:
    """Whether nobody has said its scale yet, and this one holds every rating there is."""
    outside = Rating.objects.filter(Q(value__lt=form.low) | Q(value__gt=form.high), aspect=aspect)
    return _is_observed(aspect) and not _asked_elsewhere(aspect, campaign) and not outside.exists()


def _is_observed(aspect: Aspect) -> bool:
    """Whether its scale is only what ratings show: no campaign of another installation stated it either."""
    return bool(aspect.meta.get(OBSERVED)) and not aspect.meta.get(STATED)


def _way_out(aspect: Aspect, campaign: Campaign) -> str:
    if _is_observed(aspect) and not _asked_elsewhere(aspect, campaign):
        return "Use a scale that holds these ratings, or another name."
    return "Use the same scale or another name."


def _checks(campaign: Campaign, checks: Sequence[Check], kind: str, where: str) -> list[Unit]:
    keys = {check.item for check in checks}
    items = {row.key: row for row in Item.objects.filter(project=campaign.project_id, key__in=keys)}
    outputs = {
        (row.item_id, row.system.name, row.step): row
        for row in Output.objects.filter(item__in=items.values())
        .select_related("system")
        .order_by(F("step").asc(nulls_first=True))
    }
    units, problems = [], []
    for index, check in enumerate(checks):
        place = f"{where}[{index}]"
        item = items.get(check.item)
        if item is None:
            problems.append((f"{place}.item", f"The project has no item “{check.item}”."))
            continue
        first = _output(outputs, item, check.system, check.step)
        second = _output(outputs, item, check.system_b, check.step_b) if check.system_b else None
        for name, found, wanted in (("system", first, check.system), ("system_b", second, check.system_b)):
            if wanted and found is None:
                problems.append((f"{place}.{name}", f"“{wanted}” has no output for item “{check.item}”."))
        reference = None
        if campaign.kind == Campaign.Kind.TURING:
            reference = Reference.objects.filter(item=item, set__name=ORIGINAL, position=check.reference).first()
            if reference is None:
                problems.append((f"{place}.reference", f"Item “{check.item}” has no reference {check.reference}."))
        if first is not None:
            units.append(
                Unit(
                    campaign=campaign, kind=kind, item=item, output_a=first, output_b=second, reference=reference,
                    expected=check.expected, why=check.why,
                )
            )  # fmt: skip
    if problems:
        raise refused(problems)
    return units


def _output(outputs: dict, item: Item, system: str | None, step: int | None) -> Output | None:
    """The named step, else the only or the last one."""
    if step is not None:
        return outputs.get((item.pk, system, step))
    found = [row for (item_id, name, _), row in outputs.items() if item_id == item.pk and name == system]
    return max(found, key=lambda row: row.step or 0) if found else None


def update_campaign(*, campaign: Campaign, user: Any, changes: dict[str, Any]) -> Campaign:
    """Change a draft in any part, or an open campaign in what does not touch what was judged."""
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update(of=("self",)).select_related("project").get(pk=campaign.pk)
        before = campaign_plan(campaign)
        if isinstance(changes.get("options"), dict) and changes.get("kind", campaign.kind) == campaign.kind:
            # Who names one option means the others to stay; those of another kind would not fit.
            changes = {**changes, "options": {**before["options"], **changes["options"]}}
        if campaign.state == Campaign.State.DRAFT:
            if opening_active(campaign):
                raise Conflict("The campaign is being opened. Cancel that run first.")
            parsed = parse_plan({**before, **changes})
            columns = _columns(parsed)
            _set(campaign, columns)
            _write_plan(campaign, parsed)
        else:
            fixed = sorted(set(changes) - set(CHANGEABLE))
            if fixed:
                raise refused([(name, "This is fixed once a campaign has been opened.") for name in fixed])
            parsed = parse_plan({**before, **changes})
            if parsed.options["adaptive"] and not campaign.plan.get("players"):
                raise refused([("options.adaptive", "A campaign is opened with or without adaptive choice of pairs.")])
            columns = {name: value for name, value in _columns(parsed).items() if name in changes}
            _set(campaign, columns)
        audit.record(
            verb="campaign.changed", project=campaign.project, actor=user, object=campaign, fields=sorted(changes)
        )
    return campaign


def _set(campaign: Campaign, columns: dict[str, Any]) -> None:
    for name, value in columns.items():
        setattr(campaign, name, value)
    campaign.revision += 1
    try:
        with transaction.atomic():
            campaign.save(update_fields=[*columns, "revision"])
    except IntegrityError as error:
        raise Conflict(f"There is already a campaign “{campaign.slug}” in this project.") from error


def opening_active(campaign: Campaign) -> bool:
    run = Run.objects.filter(pk=campaign.opening_id).first() if campaign.opening_id else None
    return bool(run and run.is_active)


def open_campaign(*, campaign: Campaign, user: Any, send: bool = True, here: bool = False) -> Campaign:
    """Make the units and let people in. A large campaign is opened by a worker (`campaign.opening` is its run),
    unless `here`. With `send` false the caller executes that run."""
    if campaign.state != Campaign.State.DRAFT:
        raise Conflict(f"Only a draft can be opened; this campaign is {campaign.get_state_display().lower()}.")
    rows = estimate_units(campaign).rows
    if not rows:
        raise no_units()
    if here or rows <= HERE_AT_MOST:
        return make_units(campaign_id=campaign.pk, user=user)
    run = enqueue_run(
        kind="open_campaign",
        project=campaign.project,
        user=user,
        params={"campaign": campaign.pk},
        title=f"Open {campaign.name}",
        send=send,
    )
    Campaign.objects.filter(pk=campaign.pk).update(opening=run)
    campaign.opening = run
    return campaign


def make_units(
    *, campaign_id: int, user: Any = None, progress: Callable[[int, int], None] = lambda done, total: None
) -> Campaign:
    """All units and slots, and the campaign open, in one transaction. Twice does no harm."""
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update(of=("self",)).select_related("project").get(pk=campaign_id)
        if campaign.state != Campaign.State.DRAFT:
            return campaign
        rows = choose_units(campaign)
        if not rows:
            raise no_units()
        write_units(campaign, rows, progress)
        kinds = campaign.units.exclude(kind=Unit.Kind.NORMAL)
        wanted = campaign.plan.get("pairs") if campaign.plan.get("players") else None
        campaign.unit_count = min(len(rows), wanted or len(rows))
        campaign.practice_count = kinds.filter(kind=Unit.Kind.PRACTICE).count()
        campaign.control_count = kinds.filter(kind=Unit.Kind.CONTROL).count()
        _wait_for_others(campaign)
        campaign.rater_suffix = f"@{campaign.pk}" if _asked_before(campaign) else ""
        campaign.state = Campaign.State.OPEN
        campaign.opened_at = timezone.now()
        campaign.revision += 1
        campaign.save()
        audit.record(verb="campaign.opened", project=campaign.project, actor=user, object=campaign, units=len(rows))
    return campaign


def _wait_for_others(campaign: Campaign) -> None:
    """Of two that are opened at the same moment, the second has to see the first. On PostgreSQL the ANALYZE of
    `write_units` makes it wait, too, but nothing there says that it must; SQLite has one writer. A lock of its own: the
    row of the project is held by an import for as long as that takes."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [OPENING, campaign.project_id % 2**31])


def _asked_before(campaign: Campaign) -> bool:
    """Whether an opened campaign asks for the same aspects of the same outputs: then one person's answers there
    and here are two, and this campaign's are stored under a rater of their own."""
    aspects = campaign.aspects.values("aspect")
    others = (
        Campaign.objects.filter(project=campaign.project_id, aspects__aspect__in=aspects, kind=campaign.kind)
        .exclude(pk=campaign.pk)
        .exclude(state=Campaign.State.DRAFT)
    )
    if not others.exists():
        return False
    mine = Unit.objects.filter(campaign=campaign)
    shared = Unit.objects.filter(campaign__in=others.values("pk"), kind=Unit.Kind.NORMAL).filter(
        Q(output_a__in=mine.values("output_a")) | Q(output_b__in=mine.values("output_b"))
    )
    return shared.exists()


def _move(campaign: Campaign, user: Any, move: Move) -> Campaign:
    return move_campaign(campaign=campaign, user=user, move=move, noun="campaign", revision=F("revision") + 1)


def pause_campaign(*, campaign: Campaign, user: Any) -> Campaign:
    """Nobody gets a new assignment; what is open can be sent."""
    return _move(campaign, user, "pause")


def resume_campaign(*, campaign: Campaign, user: Any) -> Campaign:
    return _move(campaign, user, "resume")


def close_campaign(*, campaign: Campaign, user: Any) -> Campaign:
    """No new assignments and no changed answers; a first answer to what is open is still taken."""
    return _move(campaign, user, "close")


def delete_campaign(*, campaign: Campaign, user: Any) -> None:
    """A campaign without judgements can go; answers are never deleted with it."""
    with transaction.atomic():
        if Judgement.objects.filter(campaign=campaign).exists():
            raise Conflict("People have judged in this campaign, so it stays. Close it instead.")
        if opening_active(campaign):
            raise Conflict("The campaign is being opened. Cancel that run first.")
        audit.record(verb="campaign.deleted", project=campaign.project, actor=user, object=campaign)
        Assignment.objects.filter(campaign=campaign).delete()
        campaign.delete()
