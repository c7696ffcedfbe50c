"""Campaigns on the overview page of a project: sections and next steps."""

from typing import Any

from django.db.models import Case, Count, F, OuterRef, Q, Subquery, Sum, Value, When
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.models import Campaign, CampaignMember, WritingCampaign
from annotation.selectors.presence import has_outputs
from annotation.selectors.writing import list_writing
from annotation.services import hooks
from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR, Need
from evalapp.common.navigation import find_role
from evalapp.common.overview import Step

SHOWN = 5


def _may(request: HttpRequest, project: Project, need: Need) -> bool:
    return bool(getattr(request.user, "is_superuser", False)) or find_role(request, project) in ROLES_FOR[need]


def _answered() -> Any:
    """The members of a campaign, whose counters add up to its judgements."""
    return CampaignMember.objects.filter(campaign=OuterRef("pk")).values("campaign")


def render_campaigns_section(request: HttpRequest, project: Project) -> str | None:
    """A few judging campaigns: open and paused ones, then others. One query."""
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


def make_campaign_step(request: HttpRequest, project: Project) -> Step | None:
    """The step of planning or opening a campaign; done once one was opened."""
    if not _may(request, project, "write") or not has_outputs(project):
        return None
    last = Campaign.objects.filter(project=project).order_by(F("opened_at").desc(nulls_last=True), "-pk").first()
    url = reverse("annotation:campaign-list", args=[project.slug])
    if last is None:
        return Step(
            title=_("Collect human judgements"),
            text=_("Plan a campaign: questions, texts, and how many annotators judge each text."),
            url=reverse("annotation:campaign-new", args=[project.slug]),
            action=_("New campaign"),
        )
    if last.opened_at is None:
        return _make_draft_step(
            _("Open the campaign"), last, reverse("annotation:campaign", args=[project.slug, last.pk])
        )
    return Step(
        title=_("Collect human judgements"), text=_("Campaigns were opened."), url=url, action=_("Campaigns"), done=True
    )


def _make_draft_step(title: str, campaign: Campaign | WritingCampaign, url: str) -> Step:
    text = _("“%(name)s” is a draft. Open it and invite annotators with a link.") % {"name": campaign.name}
    return Step(title=title, text=text, url=url, action=_("Open draft"))


def render_writing_section(request: HttpRequest, project: Project) -> str | None:
    """The newest writing campaigns that are not closed. One query."""
    if not _may(request, project, "read"):
        return None
    rows = list(list_writing(project=project).exclude(state=WritingCampaign.State.CLOSED)[:SHOWN])
    if not rows:
        return None
    return render_to_string(
        "annotation/overview/writing.html", {"project": project, "campaigns": rows}, request=request
    )


def make_writing_step(request: HttpRequest, project: Project) -> Step | None:
    """The step of planning or opening a writing campaign; done once one was opened. Only in projects that have such a
    campaign or an evaluator that could guide one, because few projects need more references."""
    if not _may(request, project, "write"):
        return None
    rows = WritingCampaign.objects.filter(project=project)
    last = rows.order_by(F("opened_at").desc(nulls_last=True), "-pk").first()
    if last is not None and last.opened_at is not None:
        url = reverse("annotation:writing", args=[project.slug, last.pk])
        text = _("Annotators write references.")
        return Step(title=_("Collect references"), text=text, url=url, action=_("Progress"), done=True)
    if last is not None:
        url = reverse("annotation:writing", args=[project.slug, last.pk])
        return _make_draft_step(_("Open the writing campaign"), last, url)
    if not hooks.list_reliability_evaluators(project=project):
        return None
    return Step(
        title=_("Collect references"),
        text=_("A trained REAM evaluator can guide annotators to references that make the set more reliable."),
        url=reverse("annotation:writing-new", args=[project.slug]),
        action=_("New writing campaign"),
    )
