"""Pages to sign in with a provider of OpenID Connect, and to connect one with an account.

Signing in begins with a link, because browsers apply the content security policy of forms to redirects as well. A
foreign page can therefore begin it, too: connecting needs a confirmation by form."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalapp.accounts import limits
from evalapp.accounts.forms import SignInForm
from evalapp.accounts.models import resolve_landing
from evalapp.accounts.selectors import check_no_participant
from evalapp.accounts.services import connect_identity, disconnect_identity, sign_in_with_identity
from evalapp.common.errors import BadInput, EvalappError
from evalapp.common.pages import page

#: Keys of the session: the sign-in that has begun, the identity to confirm, and the way to sign out at the provider.
BEGUN, CLAIMED, SIGN_OUT = "oidc_begun", "oidc_claimed", "oidc_sign_out"


@login_not_required
@require_safe
def start(request: HttpRequest, provider: str) -> HttpResponse:
    """Redirect to the provider. `next`: where to go after it; `connect`: to connect it with the user's account."""
    # Importing Authlib takes a third of a second, which other pages do not need.
    from evalapp.accounts import oidc

    row = oidc.get_provider(provider)
    limits.spend(limits.OIDC_BY_ADDRESS, limits.client_ip(request))
    target = request.GET.get("next", "")
    is_safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    begun: dict[str, Any] = {"next": target if is_safe else "", "connect": None}
    if "connect" in request.GET and request.user.is_authenticated:
        check_no_participant(request.user)
        begun["connect"] = request.user.pk
    try:
        response = oidc.start_sign_in(request, row)
    except EvalappError as error:
        return _refuse(request, begun, error)
    request.session[BEGUN] = begun
    return response


@login_not_required
@require_safe
def callback(request: HttpRequest, provider: str) -> HttpResponse:
    """Sign in with the response of the provider, or ask for the confirmation of a connection."""
    from evalapp.accounts import oidc

    row = oidc.get_provider(provider)
    begun = request.session.pop(BEGUN, {})
    try:
        claimed = oidc.finish_sign_in(request, row)
        if begun.get("connect") is not None:
            if begun["connect"] != request.user.pk:
                raise BadInput(_("You have signed in to another account in the meantime. Begin again."))
            request.session[CLAIMED] = {"provider": provider, "subject": claimed.subject, "email": claimed.email}
            return redirect("accounts:identity-confirm")
        user = sign_in_with_identity(claimed=claimed, invitation=_find_invitation(begun.get("next", "")))
    except EvalappError as error:
        return _refuse(request, begun, error)
    login(request, user, backend="evalapp.accounts.backends.PasswordBackend")
    if claimed.sign_out:
        request.session[SIGN_OUT] = {"label": row.label, "address": claimed.sign_out}
    return redirect(begun.get("next") or settings.LOGIN_REDIRECT_URL)


def _find_invitation(target: str) -> str:
    """Return the secret of the invitation from whose page the person came; empty if it was another page."""
    match = resolve_landing(target) if target else None
    return str(match.kwargs["secret"]) if match and match.view_name == "accounts:invitation" else ""


def _refuse(request: HttpRequest, begun: dict[str, Any], error: EvalappError) -> HttpResponse:
    """Show the page to sign in, or the account, with what went wrong."""
    messages.error(request, error.detail)
    if request.user.is_authenticated:
        return redirect("accounts:account")
    context = {"form": SignInForm(request), "next": begun.get("next", "")}
    return page(request, "accounts/signing/sign_in.html", context, status=error.status)


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest) -> HttpResponse:
    """Ask whether the identity of the last response opens this account from now on."""
    from evalapp.accounts import oidc

    values = request.session.get(CLAIMED)
    if values is None:
        return redirect("accounts:account")
    claimed = oidc.ClaimedIdentity(
        provider=oidc.get_provider(values["provider"]), subject=values["subject"], email=values["email"]
    )
    if request.method != "POST":
        return page(request, "accounts/account/connect.html", {"claimed": claimed})
    del request.session[CLAIMED]
    connect_identity(claimed=claimed, user=request.user)
    text = _("You can now sign in with %(provider)s.")
    messages.success(request, text % {"provider": claimed.provider.label})
    return redirect("accounts:account")


@require_POST
def disconnect(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        disconnect_identity(pk=pk, user=request.user, passwords_allowed=settings.PASSWORD_SIGN_IN)
    except EvalappError as error:
        if error.status == 404:
            raise
        messages.error(request, error.detail)
    else:
        messages.success(request, _("Removed. This sign-in no longer opens your account."))
    return redirect("accounts:account")
