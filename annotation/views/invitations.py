"""Invitation links for one campaign, which make people annotators and lead them to its first page."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from evalapp.accounts.forms import add_faults
from evalapp.accounts.links import make_invitation_link
from evalapp.accounts.models import Invitation
from evalapp.accounts.roles import Role
from evalapp.accounts.selectors import list_invitations
from evalapp.accounts.services import create_invitation, revoke_invitation
from evalapp.common.errors import EvalappError, NotThere

from .campaign_pages import CampaignPages
from .plan_forms import LinkForm

SHOWN = 100


@require_http_methods(["GET", "POST"])
def invitations(request: HttpRequest, slug: str, pk: int, kind: CampaignPages) -> HttpResponse:
    """The links of this campaign and a form for a new one. A new link is shown once, in the response to the POST."""
    campaign = kind.find(request, slug, pk, "write")
    return _show_links(request, campaign, kind, LinkForm(request.POST or None))


def invite_people(request: HttpRequest, campaign: Any, kind: CampaignPages, people: int) -> HttpResponse:
    """Create a link for some people with the usual limits, and show it with the others."""
    usual = {name: field.initial for name, field in LinkForm.base_fields.items()}
    return _show_links(request, campaign, kind, LinkForm({**usual, "max_uses": people}))


def _show_links(request: HttpRequest, campaign: Any, kind: CampaignPages, form: LinkForm) -> HttpResponse:
    landing = kind.get_landing(campaign)
    context: dict = {"form": form, "now": timezone.now()}
    if form.is_bound and form.is_valid():
        try:
            made, secret = create_invitation(
                project=campaign.project, actor=request.user, role=Role.ANNOTATOR, landing=landing, **form.cleaned_data
            )
        except EvalappError as error:
            add_faults(form, error)
        else:
            context |= {"invitation": made, "link": make_invitation_link(request, secret), "form": LinkForm()}
    context["invitations"] = list(list_invitations(campaign.project).filter(landing=landing)[:SHOWN])
    response = kind.show(request, "invitations", campaign, status=422 if form.errors else 200, **context)
    response.headers["Cache-Control"] = "no-store"
    return response


@require_POST
def invitation_revoke(request: HttpRequest, slug: str, pk: int, invitation: int, kind: CampaignPages) -> HttpResponse:
    campaign = kind.find(request, slug, pk, "write")
    rows = Invitation.objects.select_related("project").filter(project=campaign.project, role=Role.ANNOTATOR)
    row = rows.filter(pk=invitation, landing=kind.get_landing(campaign)).first()
    if row is None:
        raise NotThere(_("There is no such invitation to this campaign."))
    revoke_invitation(invitation=row, actor=request.user)
    messages.success(request, _("The link is revoked. People who joined with it stay."))
    return redirect(f"annotation:{kind.name}-people", slug, pk)
