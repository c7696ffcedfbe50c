"""Following an invitation link: join with the account one has, or make one."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from evalapp.accounts import limits
from evalapp.accounts.forms import JoinForm, add_faults
from evalapp.accounts.models import Invitation, Membership
from evalapp.accounts.services import (
    accept_invitation,
    find_invitation,
    invitation_followed,
    join_with_new_account,
)
from evalapp.common.errors import EvalappError, NotThere
from evalapp.common.pages import page


def _find(request: HttpRequest, secret: str) -> tuple[Invitation, bool]:
    """The invitation, and whether this person has followed it before, used up or over as it is now: no guess."""
    try:
        return find_invitation(secret=secret), False
    except NotThere:
        if (mine := invitation_followed(secret=secret, user=request.user)) is not None:
            return mine, True
        # After looking: a link that works opens whatever others tried from the same address.
        limits.spend(limits.LINK_FAILURES, limits.client_ip(request))
        raise


def _go(request: HttpRequest, member: Membership, invitation: Invitation) -> HttpResponse:
    messages.success(
        request,
        _("You have joined %(project)s as %(role)s.")
        % {"project": invitation.project, "role": member.get_role_display().lower()},
    )
    return redirect(invitation.landing or "home")


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    found, followed = _find(request, secret)
    if followed:
        return redirect(found.landing or "home")
    if request.method == "POST" and request.user.is_authenticated:
        member, found = accept_invitation(secret=secret, user=request.user)
        return _go(request, member, found)
    form = JoinForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            member, found = join_with_new_account(secret=secret, **form.cleaned_data)
        except EvalappError as error:
            add_faults(form, error)
        else:
            login(request, member.user, backend="evalapp.accounts.backends.PasswordBackend")
            return _go(request, member, found)
    sign_in = f"{reverse('accounts:login')}?{urlencode({'next': request.path})}"
    context = {"invitation": found, "form": form, "sign_in": sign_in}
    context["campaign_kind"] = found.campaign.partition(":")[0]
    return page(request, "accounts/people/join.html", context, status=422 if form.errors else 200)
