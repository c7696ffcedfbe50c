"""Reading campaigns for those who plan and watch them: the list, one campaign, its plan as people wrote it, what
it would judge."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q, QuerySet

from annotation.allocation.plan import OPTIONS
from annotation.models import Aspect, Campaign, ItemFlag, Unit
from evalapp.accounts.models import Project
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere

from .data import list_systems


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


def get_campaign(*, user: Any, campaign_id: int, need: Need = "read") -> Campaign:
    """One campaign if the user's role in its project covers `need`; 404 for strangers, 403 for a lesser role."""
    campaign = Campaign.objects.select_related("project", "opening").filter(pk=campaign_id).first()
    if campaign is None:
        raise NotThere("There is no such campaign that you can see.")
    get_project(user=user, slug=campaign.project.slug, need=need)
    return campaign


def get_flag(*, user: Any, flag_id: int) -> ItemFlag:
    flag = ItemFlag.objects.select_related("campaign__project").filter(pk=flag_id).first()
    if flag is None:
        raise NotThere("There is no such flag that you can see.")
    get_project(user=user, slug=flag.campaign.project.slug, need="write")
    return flag


def has_adaptive(project: Project) -> bool:
    """Whether a campaign of the project chose, or chooses, its pairs adaptively."""
    return Campaign.objects.filter(project=project, plan__has_key="players").exists()


def campaign_plan(campaign: Campaign) -> dict[str, Any]:
    """The plan as `read_plan` takes it: what the page edits, the API shows, and a copy starts from."""
    aspects = []
    for row in campaign.aspects.select_related("aspect").order_by("position"):
        aspect: dict[str, Any] = {"name": row.aspect.name, "question": row.question}
        if campaign.kind == Campaign.Kind.LIKERT:
            aspect |= {"low": _plain(row.low), "high": _plain(row.high), "step": _plain(row.step), "labels": row.labels}
        aspects.append(aspect)
    checks = campaign.units.exclude(kind=Unit.Kind.NORMAL).select_related(
        "item", "output_a__system", "output_b__system", "reference"
    )
    by_kind: dict[str, list[dict]] = {"practice": [], "control": []}
    for unit in checks.order_by("pk"):
        by_kind[unit.kind].append(_check(unit))
    plan: dict[str, Any] = {
        "slug": campaign.slug,
        "name": campaign.name,
        "kind": campaign.kind,
        "aspects": aspects,
        "overlap": campaign.overlap,
        "max_per_annotator": campaign.max_per_annotator,
        "lease_minutes": campaign.lease_minutes,
        "seed": campaign.seed,
        "guidelines": campaign.guidelines,
        "items": campaign.plan.get("items") or "all",
        "systems": campaign.plan.get("systems", []),
        "steps": campaign.plan.get("steps", "all"),
        "options": {**OPTIONS, **campaign.options},
        "practice": by_kind["practice"],
        "controls": by_kind["control"],
    }
    if campaign.kind == Campaign.Kind.PAIRWISE:
        plan["pairs"] = campaign.plan.get("pairs")
    return plan


def _plain(value: float | None) -> float | int | None:
    return int(value) if value is not None and float(value).is_integer() else value


def _check(unit: Unit) -> dict[str, Any]:
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


def plan_choices(*, project: Project) -> dict[str, Any]:
    """What a plan can choose from: systems with their number of outputs, aspects, number of items. Three queries."""
    return {
        "systems": list_systems(project),
        "aspects": list(Aspect.objects.filter(project=project).order_by("position", "pk")),
        "items": project.items.count(),
    }
