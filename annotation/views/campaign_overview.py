"""What campaigns show on the overview of a project: those that are not closed, and the step that comes next."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, Count, F, OuterRef, Q, Subquery, Sum, Value, When
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse

from annotation.models import Campaign, CampaignMember, WritingCampaign
from annotation.selectors.presence import has_outputs
from annotation.selectors.writing import list_writing
from annotation.services import hooks
from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR, Need
from evalapp.common.navigation import role_of
from evalapp.common.overview import Step

SHOWN = 5


def _may(request: HttpRequest, project: Project, need: Need) -> bool:
    return bool(getattr(request.user, "is_superuser", False)) or role_of(request, project) in ROLES_FOR[need]


def _answered() -> Any:
    """Judgements of a campaign out of the counters of its members: a handful of rows each."""
    return CampaignMember.objects.filter(campaign=OuterRef("pk")).values("campaign")


def campaigns_section(request: HttpRequest, project: Project) -> str | None:
    """Campaigns that are open or paused, then drafts and closed ones, a few of them. One query."""
    if not _may(request, project, "read"):
        return None
    rows = list(
        Campaign.objects.filter(project=project)
        .annotate(
            answered=Subquery(_answered().annotate(total=Sum("done")).values("total")),
            people=Subquery(_answered().annotate(total=Count("pk")).values("total")),
            running=Case(When(Q(state__in=["open", "paused"]), then=Value(1)), default=Value(0)),
        )
        .order_by("-running", "-pk")[:SHOWN]
    )
    if not rows:
        return None
    for row in rows:
        row.judgements_wanted = row.unit_count * row.overlap
        row.shown_done = min(row.answered or 0, row.judgements_wanted)
    context = {"project": project, "campaigns": rows}
    return render_to_string("annotation/overview/campaigns.html", context, request=request)


def campaign_step(request: HttpRequest, project: Project) -> Step | None:
    """Plan a campaign, or open the draft; done once one has been opened."""
    if not _may(request, project, "write") or not has_outputs(project):
        return None
    last = Campaign.objects.filter(project=project).order_by(F("opened_at").desc(nulls_last=True), "-pk").first()
    url = reverse("annotation:campaign-list", args=[project.slug])
    if last is None:
        return Step(
            title="Ask people",
            text="Plan a campaign: questions, texts, how many people judge each.",
            url=reverse("annotation:campaign-new", args=[project.slug]),
            action="New campaign",
        )
    if last.opened_at is None:
        return Step(
            title="Open the campaign",
            text=f"“{last.name}” is a draft. Open it and invite people by a link.",
            url=reverse("annotation:campaign", args=[project.slug, last.pk]),
            action="The draft",
        )
    return Step(title="Ask people", text="Campaigns have been opened.", url=url, action="Campaigns", done=True)


def writing_section(request: HttpRequest, project: Project) -> str | None:
    """Writing campaigns that are not closed, the newest of them. One query."""
    if not _may(request, project, "read"):
        return None
    rows = list(list_writing(project=project).exclude(state=WritingCampaign.State.CLOSED)[:SHOWN])
    if not rows:
        return None
    return render_to_string(
        "annotation/overview/writing.html", {"project": project, "campaigns": rows}, request=request
    )


def writing_step(request: HttpRequest, project: Project) -> Step | None:
    """Open the draft of a writing campaign, or plan one where an evaluator could guide it; done once one was opened.
    Nothing in other projects: few need more references."""
    if not _may(request, project, "write"):
        return None
    rows = WritingCampaign.objects.filter(project=project)
    last = rows.order_by(F("opened_at").desc(nulls_last=True), "-pk").first()
    if last is not None and last.opened_at is not None:
        url = reverse("annotation:writing", args=[project.slug, last.pk])
        return Step(title="Write references", text="People write references.", url=url, action="Watch", done=True)
    if last is not None:
        return Step(
            title="Open the writing campaign",
            text=f"“{last.name}” is a draft. Open it and invite people by a link.",
            url=reverse("annotation:writing", args=[project.slug, last.pk]),
            action="The draft",
        )
    if not hooks.list_reliability_evaluators(project=project):
        return None
    return Step(
        title="Write references",
        text="A trained REAM evaluator can tell people, while they write, whether a reference makes the set better.",
        url=reverse("annotation:writing-new", args=[project.slug]),
        action="New writing campaign",
    )
