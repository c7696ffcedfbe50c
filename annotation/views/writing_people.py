"""Invitations into one writing campaign: links that make people annotators and lead them to its first item."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from annotation.models import WritingCampaign
from evalapp.accounts.forms import add_faults
from evalapp.accounts.models import Invitation
from evalapp.accounts.roles import Role
from evalapp.accounts.selectors import invitations_of
from evalapp.accounts.services import create_invitation, revoke_invitation
from evalapp.common.errors import EvalappError, NotThere
from evalapp.common.pages import page

from .campaign_forms import LinkForm
from .campaign_people import SHOWN
from .writing_parts import get_parts


def landing_of(campaign: WritingCampaign) -> str:
    return reverse("annotation:write", args=[campaign.pk])


@login_required
@require_http_methods(["GET", "POST"])
def invitations(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The links of this campaign and a form for another; a new link is in the answer to the POST and nowhere else."""
    project, campaign = get_parts(request, slug, pk, "write")
    form = LinkForm(request.POST or None)
    context: dict = {"project": project, "campaign": campaign, "form": form, "now": timezone.now()}
    if request.method == "POST" and form.is_valid():
        try:
            made, secret = create_invitation(
                project=project,
                actor=request.user,
                role=Role.ANNOTATOR,
                landing=landing_of(campaign),
                **form.cleaned_data,
            )
        except EvalappError as error:
            add_faults(form, error)
        else:
            link = request.build_absolute_uri(reverse("accounts:invitation", args=[secret]))
            context |= {"invitation": made, "link": link, "form": LinkForm()}
    context["invitations"] = list(invitations_of(project).filter(landing=landing_of(campaign))[:SHOWN])
    response = page(request, "annotation/writing/invitations.html", context, status=422 if form.errors else 200)
    response.headers["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def invitation_revoke(request: HttpRequest, slug: str, pk: int, invitation: int) -> HttpResponse:
    project, campaign = get_parts(request, slug, pk, "write")
    row = (
        Invitation.objects.select_related("project")
        .filter(project=project, pk=invitation, landing=landing_of(campaign), role=Role.ANNOTATOR)
        .first()
    )
    if row is None:
        raise NotThere("There is no such invitation into this campaign.")
    revoke_invitation(invitation=row, actor=request.user)
    messages.success(request, "The link works no more. Who came by it stays.")
    return redirect("annotation:writing-people", slug, pk)
