"""Invitations into one campaign, of judging or of writing: links that make people annotators and lead them to its first
page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from annotation.models import Campaign, WritingCampaign
from evalapp.accounts.forms import add_faults
from evalapp.accounts.models import Invitation, Project
from evalapp.accounts.roles import Role
from evalapp.accounts.selectors import invitations_of
from evalapp.accounts.services import create_invitation, revoke_invitation
from evalapp.common.errors import EvalappError, NotThere
from evalapp.common.pages import page

from . import campaigns, writing_parts
from .campaign_forms import LinkForm

SHOWN = 100


@dataclass(frozen=True)
class Sort:
    """A sort of campaign: how one is found, the page a link leads to, the page of its links."""

    get_parts: Callable[..., tuple[Project, Campaign | WritingCampaign]]
    first_page: str
    own_page: str
    template: str

    def landing_of(self, campaign: Campaign | WritingCampaign) -> str:
        return reverse(self.first_page, args=[campaign.pk])


JUDGING = Sort(
    campaigns.get_parts, "annotation:judge", "annotation:campaign-people", "annotation/campaigns/invitations.html"
)
WRITING = Sort(
    writing_parts.get_parts, "annotation:write", "annotation:writing-people", "annotation/writing/invitations.html"
)


@login_required
@require_http_methods(["GET", "POST"])
def invitations(request: HttpRequest, slug: str, pk: int, sort: Sort) -> HttpResponse:
    """The links of this campaign and a form for another; a new link is in the answer to the POST and nowhere else."""
    project, campaign = sort.get_parts(request, slug, pk, "write")
    form, landing = LinkForm(request.POST or None), sort.landing_of(campaign)
    context: dict = {"project": project, "campaign": campaign, "form": form, "now": timezone.now()}
    if request.method == "POST" and form.is_valid():
        try:
            made, secret = create_invitation(
                project=project, actor=request.user, role=Role.ANNOTATOR, landing=landing, **form.cleaned_data
            )
        except EvalappError as error:
            add_faults(form, error)
        else:
            link = request.build_absolute_uri(reverse("accounts:invitation", args=[secret]))
            context |= {"invitation": made, "link": link, "form": LinkForm()}
    context["invitations"] = list(invitations_of(project).filter(landing=landing)[:SHOWN])
    response = page(request, sort.template, context, status=422 if form.errors else 200)
    response.headers["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def invitation_revoke(request: HttpRequest, slug: str, pk: int, invitation: int, sort: Sort) -> HttpResponse:
    project, campaign = sort.get_parts(request, slug, pk, "write")
    rows = Invitation.objects.select_related("project").filter(project=project, role=Role.ANNOTATOR)
    found = rows.filter(pk=invitation, landing=sort.landing_of(campaign)).first()
    if found is None:
        raise NotThere("There is no such invitation into this campaign.")
    revoke_invitation(invitation=found, actor=request.user)
    messages.success(request, "The link works no more. Who came by it stays.")
    return redirect(sort.own_page, slug, pk)
