"""Campaigns for the people who plan and run them, and flags, for both kinds of work; the plan of a judging campaign."""

from typing import Any, TypeVar

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _

from annotation.allocation.plan import OPTIONS
from annotation.models import Aspect, Campaign, ItemFlag, Unit, WritingCampaign, WritingFlag
from evalapp.accounts.models import Project, User
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere

from .attributes import read_attributes
from .data import list_systems
from .own_campaigns import check_invited

C = TypeVar("C", Campaign, WritingCampaign)
F = TypeVar("F", ItemFlag, WritingFlag)
#: The relations that are read together with a campaign, and with its flags.
RELATED: dict[type, tuple[str, ...]] = {Campaign: ("opening",), WritingCampaign: ("start_set", "target_set")}
FLAG_PARTS: dict[type, tuple[str, ...]] = {
    Campaign: ("assignment__annotator", "assignment__unit__item", "assignment__unit__output_a__system"),
    WritingCampaign: ("task__unit__item", "task__member"),
}


def list_campaigns(*, project: Project) -> QuerySet[Campaign]:
    """Newest first, each with `member_count` and `open_flags`."""
    return (
        Campaign.objects.filter(project=project)
        .select_related("project", "opening")
        .annotate(
            member_count=Count("members", distinct=True),
            open_flags=Count("flags", filter=Q(flags__resolved_at=None), distinct=True),
        )
        .order_by("-pk")
    )


def get_campaign(
    *,
    user: User,
    campaign_id: int,
    need: Need = "read",
    model: type[C] = Campaign,  # type: ignore[assignment]
) -> C:
    """A campaign, if the user's role in its project covers `need`. NotThere for strangers, NotAllowed for lesser
    roles."""
    campaign = find_campaign(campaign_id, model)
    get_project(user=user, slug=campaign.project.slug, need=need)
    return campaign


def get_own_campaign(*, user: User, campaign_id: int, model: type[C] = Campaign) -> C:  # type: ignore[assignment]
    """A campaign in which `user` may work. NotThere for strangers, NotAllowed for viewers and for annotators whose
    invitation does not cover it."""
    campaign = find_campaign(campaign_id, model)
    check_invited(project=get_project(user=user, slug=campaign.project.slug, need="annotate"), campaign=campaign)
    return campaign


def find_campaign(campaign_id: int, model: type[C]) -> C:
    """A campaign with the rows it refers to, without a check of rights."""
    rows = model.objects.select_related("project", *RELATED[model])
    campaign = rows.filter(pk=campaign_id).first()
    if campaign is None:
        raise NotThere(_("There is no such campaign that you can see."))
    return campaign


def list_flags(campaign: Campaign | WritingCampaign, *, resolved: bool | None = None) -> QuerySet[Any]:
    """The flags of a campaign, newest first, with what they are about; `resolved` selects the resolved or open ones."""
    rows = campaign.flags.select_related(*FLAG_PARTS[type(campaign)])
    if resolved is not None:
        rows = rows.filter(resolved_at__isnull=not resolved)
    return rows.order_by("-pk")


def get_flag(*, user: User, flag_id: int, model: type[F] = ItemFlag) -> F:  # type: ignore[assignment]
    """A flag, if the user may resolve it."""
    rows = model.objects.select_related("campaign__project")
    flag = rows.filter(pk=flag_id).first()
    if flag is None:
        raise NotThere(_("There is no such flag that you can see."))
    get_project(user=user, slug=flag.campaign.project.slug, need="write")
    return flag


def has_adaptive(project: Project) -> bool:
    """Whether a campaign of the project uses, or used, adaptive pair selection."""
    return Campaign.objects.filter(project=project, plan__has_key="players").exists()


def make_campaign_plan(campaign: Campaign) -> dict[str, Any]:
    """The plan in the form that `read_plan` takes, for the form, the API and copies."""
    aspects = []
    for row in campaign.aspects.select_related("aspect").order_by("position"):
        aspect: dict[str, Any] = {"name": row.aspect.name, "question": row.question}
        if campaign.kind == Campaign.Kind.LIKERT:
            scale = read_attributes(row, "low high step").items()
            aspect |= {name: _shorten(value) for name, value in scale} | {"labels": row.labels}
        aspects.append(aspect)
    checks = campaign.units.exclude(kind=Unit.Kind.NORMAL).select_related(
        "item", "output_a__system", "output_b__system", "reference"
    )
    by_kind: dict[str, list[dict]] = {"practice": [], "control": []}
    for unit in checks.order_by("pk"):
        by_kind[unit.kind].append(_describe_check(unit))
    plan: dict[str, Any] = {
        **read_attributes(campaign, "slug name kind overlap max_per_annotator lease_minutes seed guidelines"),
        "aspects": aspects,
        "items": campaign.plan.get("items") or "all",
        "systems": campaign.plan.get("systems", []),
        "steps": campaign.plan.get("steps", "all"),
        "options": {**OPTIONS, **campaign.options},
        "practice": by_kind["practice"],
        "controls": by_kind["control"],
    }
    if campaign.kind == Campaign.Kind.PAIRWISE:
        plan["pairs"] = campaign.plan.get("pairs")
    if campaign.plan.get("outputs"):
        plan |= {"outputs": campaign.plan["outputs"], "chosen": campaign.plan["chosen"]}
    return plan


def _shorten(value: float | None) -> float | int | None:
    return int(value) if value is not None and float(value).is_integer() else value


def _describe_check(unit: Unit) -> dict[str, Any]:
    row: dict[str, Any] = {"item": unit.item.key, "system": unit.output_a.system.name}
    if unit.output_a.step is not None:
        row["step"] = unit.output_a.step
    if unit.output_b is not None:
        row["system_b"] = unit.output_b.system.name
        if unit.output_b.step is not None:
            row["step_b"] = unit.output_b.step
    if unit.reference is not None:
        row["reference"] = unit.reference.position
    return {**row, "expected": unit.expected, "why": unit.why}


def list_plan_choices(*, project: Project) -> dict[str, Any]:
    """The choices for a plan: systems with their number of outputs, aspects, and the number of items. Three queries."""
    return {
        "systems": list_systems(project),
        "aspects": list(Aspect.objects.filter(project=project).order_by("position", "pk")),
        "items": project.items.count(),
    }
