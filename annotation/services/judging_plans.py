"""The part of judging in the life cycle of campaigns: aspects, practice and control units, and opening."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Max, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

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
    Participant,
    Rating,
    Reference,
    System,
    Unit,
)
from annotation.models.data import OBSERVED, ORIGINAL, STATED
from annotation.selectors.campaigns import make_campaign_plan
from evalapp.accounts.models import Project, User
from evalapp.common.errors import Conflict
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run

from .campaign_work import CampaignWork, reject_plan
from .campaigns_units import HERE_AT_MOST, choose_units, estimate_units, explain_no_units, write_units

#: First key of the advisory lock of opening a campaign; the second is the number of the project.
OPENING = 0x6F70656E


class JudgingWork(CampaignWork[Campaign, Plan]):
    model = Campaign
    verb = "campaign"
    changeable = ("name", "guidelines", "max_per_annotator", "lease_minutes", "options")
    read_plan = staticmethod(read_plan)
    delete_refusal = gettext_lazy("The campaign has judgements or participants, so it cannot be deleted. Close it.")

    def current_plan(self, campaign: Campaign) -> dict[str, Any]:
        return make_campaign_plan(campaign)

    def own_columns(self, project: Project, plan: Plan) -> dict[str, Any]:
        return {"overlap": plan.overlap, "plan": plan.selection.as_dict()}

    def store_rows(self, campaign: Campaign, plan: Plan) -> None:
        _check_systems(campaign, plan)
        campaign.aspects.all().delete()
        for position, form in enumerate(plan.aspects):
            CampaignAspect.objects.create(
                campaign=campaign,
                aspect=_get_aspect(campaign, form, f"aspects[{position}]"),
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
                *_make_checks(campaign, plan.practice, Unit.Kind.PRACTICE.value, "practice"),
                *_make_checks(campaign, plan.controls, Unit.Kind.CONTROL.value, "controls"),
            ]
        )

    def check_idle(self, campaign: Campaign) -> None:
        run = Run.objects.filter(pk=campaign.opening_id).first() if campaign.opening_id else None
        if run and run.is_active:
            raise Conflict(_("The campaign is being opened. Cancel that run first."))

    def check_change(self, campaign: Campaign, plan: Plan) -> None:
        if plan.options["adaptive"] and not campaign.plan.get("players"):
            message = _("Adaptive pair selection can only be chosen before the campaign is opened.")
            raise reject_plan([("options.adaptive", message)])

    def touch(self) -> dict[str, Any]:
        return {"revision": F("revision") + 1}

    def open(self, campaign: Campaign, user: User | None, *, send: bool = True, here: bool = False) -> Campaign:  # type: ignore[override]
        """Large campaigns are opened by a worker (`campaign.opening` is its run), unless `here`. With `send` false
        the caller executes that run."""
        self.check_draft(campaign)
        rows = estimate_units(campaign).rows
        if not rows:
            raise explain_no_units()
        if here or rows <= HERE_AT_MOST:
            return make_units(campaign_id=campaign.pk, user=user)
        run = enqueue_run(
            kind="open_campaign",
            project=campaign.project,
            user=user,
            params={"campaign": campaign.pk},
            title=gettext_noop("Open %(campaign)s") % {"campaign": campaign.name},
            send=send,
        )
        Campaign.objects.filter(pk=campaign.pk).update(opening=run)
        campaign.opening = run
        return campaign

    def has_answers(self, campaign: Campaign) -> bool:
        return (
            Judgement.objects.filter(campaign=campaign).exists()
            or Participant.objects.filter(recruitment__campaign=campaign).exists()
        )

    def delete_rows(self, campaign: Campaign) -> None:
        Assignment.objects.filter(campaign=campaign).delete()
        campaign.delete()


JUDGING = JudgingWork()


# ---- aspects and check units ------------------------------------------------------------------------------


def _check_systems(campaign: Campaign, plan: Plan) -> None:
    names = [name for name, _ in plan.selection.systems]
    known = set(System.objects.filter(project=campaign.project_id, name__in=names).values_list("name", flat=True))
    missing = _("The project has no system “%(name)s”.")
    problems = [("systems", missing % {"name": name}) for name in names if name not in known]
    if problems:
        raise reject_plan(problems)


def _get_aspect(campaign: Campaign, form: AspectForm, where: str) -> Aspect:
    """The project's aspect of this name, created if necessary. Its scale must match the form, because ratings are
    pooled by aspect; a scale that was only inferred from uploaded ratings is replaced by the one of the plan."""
    last = Aspect.objects.filter(project=campaign.project_id).aggregate(last=Max("position"))["last"]
    aspect, _is_new = Aspect.objects.get_or_create(
        project_id=campaign.project_id,
        name=form.name,
        defaults={"low": form.low, "high": form.high, "position": 0 if last is None else last + 1},
    )
    if form.low is None or (aspect.low, aspect.high) == (form.low, form.high):
        return aspect
    if aspect.low is None or _is_unused(aspect, campaign) or _is_compatible(aspect, campaign, form):
        aspect.low, aspect.high = form.low, form.high
        aspect.save(update_fields=["low", "high"])
        return aspect
    message = _(
        "“%(name)s” is rated from %(low)g to %(high)g in this project, so it cannot be rated from %(new_low)g to "
        "%(new_high)g here."
    ) % {"name": form.name, "low": aspect.low, "high": aspect.high, "new_low": form.low, "new_high": form.high}
    raise reject_plan([(f"{where}.low", f"{message} {_suggest_scale(aspect, campaign)}")])


def _is_unused(aspect: Aspect, campaign: Campaign) -> bool:
    """Whether the scale only comes from an earlier plan of this campaign or of a deleted one."""
    if aspect.upload_id is not None or aspect.meta or _is_used_elsewhere(aspect, campaign):
        return False
    return not Rating.objects.filter(aspect=aspect).exists()


def _is_used_elsewhere(aspect: Aspect, campaign: Campaign) -> bool:
    return CampaignAspect.objects.filter(aspect=aspect, low__isnull=False).exclude(campaign=campaign).exists()


def _is_compatible(aspect: Aspect, campaign: Campaign, form: AspectForm) -> bool:
    """Whether the scale was never stated explicitly, and the form's scale includes all existing ratings."""
    outside = Rating.objects.filter(Q(value__lt=form.low) | Q(value__gt=form.high), aspect=aspect)
    return _is_inferred(aspect) and not _is_used_elsewhere(aspect, campaign) and not outside.exists()


def _is_inferred(aspect: Aspect) -> bool:
    """Whether the scale was inferred from ratings; an imported campaign may have stated it instead."""
    return bool(aspect.meta.get(OBSERVED)) and not aspect.meta.get(STATED)


def _suggest_scale(aspect: Aspect, campaign: Campaign) -> str:
    if _is_inferred(aspect) and not _is_used_elsewhere(aspect, campaign):
        return _("Use a scale that includes these ratings, or another name.")
    return _("Use the same scale or another name.")


def _make_checks(campaign: Campaign, checks: Sequence[Check], kind: str, where: str) -> list[Unit]:
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
            problems.append((f"{place}.item", _("The project has no item “%(item)s”.") % {"item": check.item}))
            continue
        first = _find_output(outputs, item, check.system, check.step)
        second = _find_output(outputs, item, check.system_b, check.step_b) if check.system_b else None
        for name, output, wanted in (("system", first, check.system), ("system_b", second, check.system_b)):
            if wanted and output is None:
                message = _("“%(system)s” has no output for item “%(item)s”.")
                problems.append((f"{place}.{name}", message % {"system": wanted, "item": check.item}))
        reference = None
        if campaign.kind == Campaign.Kind.TURING:
            reference = Reference.objects.filter(item=item, set__name=ORIGINAL, position=check.reference).first()
            if reference is None:
                message = _("Item “%(item)s” has no reference %(number)d.")
                values = {"item": check.item, "number": check.reference}
                problems.append((f"{place}.reference", message % values))
        if first is not None:
            units.append(
                Unit(
                    campaign=campaign, kind=kind, item=item, output_a=first, output_b=second, reference=reference,
                    expected=check.expected, why=check.why,
                )
            )  # fmt: skip
    if problems:
        raise reject_plan(problems)
    return units


def _find_output(outputs: dict, item: Item, system: str | None, step: int | None) -> Output | None:
    """The output at `step`, or at the last step if `step` is None."""
    if step is not None:
        return outputs.get((item.pk, system, step))
    rows = [row for key, row in outputs.items() if key[:2] == (item.pk, system)]
    return max(rows, key=lambda row: row.step or 0) if rows else None


# ---- opening ----------------------------------------------------------------------------------------------


def make_units(
    *, campaign_id: int, user: User | None = None, progress: Callable[[int, int], None] = lambda done, total: None
) -> Campaign:
    """Create all units and slots and open the campaign, in one transaction. Idempotent."""
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update().get(pk=campaign_id)
        if campaign.state != Campaign.State.DRAFT:
            return campaign
        rows = choose_units(campaign)
        if not rows:
            raise explain_no_units()
        write_units(campaign, rows, progress)
        kinds = campaign.units.exclude(kind=Unit.Kind.NORMAL)
        wanted = campaign.plan.get("pairs") if campaign.plan.get("players") else None
        campaign.unit_count = min(len(rows), wanted or len(rows))
        campaign.practice_count = kinds.filter(kind=Unit.Kind.PRACTICE).count()
        campaign.control_count = kinds.filter(kind=Unit.Kind.CONTROL).count()
        _lock_openings(campaign)
        campaign.rater_suffix = f"@{campaign.pk}" if _asked_before(campaign) else ""
        campaign.state = Campaign.State.OPEN
        campaign.opened_at = timezone.now()
        campaign.revision += 1
        campaign.save()
        JUDGING.record("opened", campaign, user, units=len(rows))
    return campaign


def _lock_openings(campaign: Campaign) -> None:
    """Serialize the openings of a project, so that the second of two sees the first. SQLite has a single writer anyway.
    This is an advisory lock, because imports lock the project's row for as long as they run."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [OPENING, campaign.project_id % 2**31])


def _asked_before(campaign: Campaign) -> bool:
    """Whether an opened campaign has the same aspects and outputs. Then a person's answers in this campaign are stored
    under a separate rater id, so that both answers are kept."""
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
