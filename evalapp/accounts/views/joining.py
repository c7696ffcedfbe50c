"""The page of an invitation link: join with an existing or a new account."""

from functools import partial

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from evalapp.accounts import limits
from evalapp.accounts.forms import JoinForm, submit
from evalapp.accounts.models import Invitation, Membership
from evalapp.accounts.selectors import check_passwords
from evalapp.accounts.services import (
    accept_invitation,
    find_followed_invitation,
    find_invitation,
    join_with_new_account,
)
from evalapp.common.errors import NotThere
from evalapp.common.naming import in_sentence
from evalapp.common.pages import page


def _find(request: HttpRequest, secret: str) -> tuple[Invitation, bool]:
    """Return the invitation, and whether it is used up or expired and the user has joined with it before."""
    try:
        return find_invitation(secret=secret), False
    except NotThere:
        if (followed := find_followed_invitation(secret=secret, user=request.user)) is not None:
            return followed, True
        # Only failures are limited, so that valid links keep working from the same address.
        limits.spend(limits.LINK_FAILURES, limits.client_ip(request))
        raise


def _welcome(request: HttpRequest, member: Membership, invitation: Invitation) -> HttpResponse:
    messages.success(
        request,
        _("You have joined %(project)s as %(role)s.")
        % {"project": invitation.project, "role": in_sentence(member.get_role_display())},
    )
    return redirect(invitation.landing or "home")


@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    row, followed = _find(request, secret)
    if followed:
        return redirect(row.landing or "home")
    is_member = request.user.is_authenticated and not request.user.is_participant
    if request.method == "POST" and is_member:
        return _welcome(request, *accept_invitation(secret=secret, user=request.user))
    if request.method == "POST":
        check_passwords()
    form = JoinForm(request.POST or None, initial={"email": row.email})
    if joined := submit(form, partial(join_with_new_account, secret=secret)):
        login(request, joined[0].user, backend="evalapp.accounts.backends.PasswordBackend")
        return _welcome(request, *joined)
    sign_in = f"{reverse('accounts:login')}?{urlencode({'next': request.path})}"
    context = {"invitation": row, "form": form, "sign_in": sign_in, "is_member": is_member}
    context["campaign_kind"] = row.campaign.partition(":")[0]
    return page(request, "accounts/people/join.html", context, status=422 if form.errors else 200)
