"""Pages of the user's account: settings, password, API tokens, stored data."""

from functools import partial

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalapp.accounts.forms import AccountForm, CloseForm, PasswordForm, TokenForm, submit
from evalapp.accounts.models import ApiToken, Identity, Membership, User
from evalapp.accounts.selectors import check_passwords
from evalapp.accounts.services import (
    change_password,
    close_account,
    collect,
    create_token,
    revoke_token,
    update_account,
    withdraw_texts,
)
from evalapp.common.errors import NotThere
from evalapp.common.pages import page


@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    # The form gets a second instance, so that the header does not show refused values.
    form = AccountForm(request.POST or None, instance=User.objects.get(pk=request.user.pk))
    if submit(form, partial(update_account, user=request.user)):
        messages.success(request, _("Saved."))
        return redirect("accounts:account")
    memberships = Membership.objects.filter(user=request.user).select_related("project").order_by("project__name")
    identities = list(Identity.objects.visible_to(request.user).order_by("pk"))
    connected = {identity.issuer for identity in identities}
    others = [provider for provider in settings.OIDC_PROVIDERS.values() if provider.issuer not in connected]
    context = {"form": form, "memberships": memberships, "identities": identities, "others": others}
    return page(request, "accounts/account/show.html", context, status=422 if form.errors else 200)


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def own_data(request: HttpRequest) -> HttpResponse:
    """Show the data stored about the user; withdraw texts or close the account."""
    form = CloseForm(request.user, request.POST if request.POST.get("act") == "close" else None)
    if request.POST.get("act") == "withdraw":
        counts = withdraw_texts(user=request.user)
        emptied = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or _("no texts")
        messages.success(request, _("Withdrawn: %(texts)s.") % {"texts": emptied})
        return redirect("accounts:own-data")
    if submit(form, partial(close_account, user=request.user)):
        logout(request)
        messages.success(request, _("Your account has been closed."))
        return redirect("home")
    context = {"form": form, "parts": collect(user=request.user)}
    return page(request, "accounts/account/own_data.html", context, status=422 if form.errors else 200)


@require_safe
def own_data_file(request: HttpRequest) -> HttpResponse:
    """Download the data stored about the user as JSON."""
    body = {part.name: part.rows for part in collect(user=request.user)}
    response = JsonResponse(body, json_dumps_params={"indent": 1, "ensure_ascii": False})
    response.headers["Content-Disposition"] = 'attachment; filename="my-data.json"'
    return response


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    check_passwords()
    form = PasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        user, revoked = change_password(form=form)
        update_session_auth_hash(request, user)
        messages.success(request, _("Password changed. Other browsers have been signed out.") + say_revoked(revoked))
        return redirect("accounts:account")
    return page(request, "accounts/account/password.html", {"form": form}, status=422 if form.errors else 200)


def say_revoked(count: int) -> str:
    """Return a sentence about revoked API tokens, with a leading space; empty if there are none."""
    text = ngettext("%(count)d API token was revoked.", "%(count)d API tokens were revoked.", count)
    return f" {text % {'count': count}}" if count else ""


@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """List and create tokens. Only the response to the POST contains the secret."""
    form = TokenForm(request.POST or None, user=request.user)
    context: dict = {"form": form}
    if created := submit(form, partial(create_token, user=request.user)):
        context = {"form": TokenForm(user=request.user), "token": created[0], "secret": created[1]}
    rows = ApiToken.objects.visible_to(request.user).select_related("project").order_by("-pk")
    context |= {"tokens": list(rows), "now": timezone.now()}
    response = page(request, "accounts/account/tokens.html", context, status=422 if form.errors else 200)
    response.headers["Cache-Control"] = "no-store"
    return response


@require_POST
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    token = ApiToken.objects.visible_to(request.user).filter(pk=pk).first()
    if token is None:
        raise NotThere(_("Token not found."))
    revoke_token(token=token, actor=request.user)
    messages.success(request, _("The token “%(name)s” has been revoked.") % {"name": token.name})
    return redirect("accounts:token-list")
