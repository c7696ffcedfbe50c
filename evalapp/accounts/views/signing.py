"""Pages to sign in, sign out and reset the password."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import login, views
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from evalapp.accounts import limits
from evalapp.accounts.forms import NewPasswordForm, ResetForm, SignInForm
from evalapp.accounts.models import User
from evalapp.accounts.selectors import check_passwords
from evalapp.accounts.services import reset_password
from evalapp.common.pages import page

from .account import say_revoked
from .identities import SIGN_OUT

#: Limits a page with a form to these methods; Django's views also accept PUT.
form_page = method_decorator(require_http_methods(["GET", "HEAD", "POST"]), name="dispatch")


class NeedsPasswords:
    """A view that does not exist where people sign in with their institution only."""

    @method_decorator(login_not_required)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        check_passwords()
        return super().dispatch(request, *args, **kwargs)


@form_page
class SignIn(views.LoginView):
    template_name = "accounts/signing/sign_in.html"
    form_class = SignInForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        check_passwords()
        for limit, key in self._limits():
            limits.check(limit, key)
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: Any) -> HttpResponse:
        for limit, key in self._limits():
            limits.count(limit, key)
        return super().form_invalid(form)

    def _limits(self) -> list[tuple[limits.Limit, str]]:
        # Normalised like in the form, so that spaces and full-width letters do not circumvent the limit.
        name = User.normalize_username(self.request.POST.get("username", "").strip()[:200])
        return [(limits.SIGN_IN_BY_ADDRESS, limits.client_ip(self.request)), (limits.SIGN_IN_BY_NAME, name)]


@method_decorator(login_not_required, name="dispatch")
class SignOut(views.LogoutView):
    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign out here. People who signed in with a provider get the link to sign out there."""
        sign_out = request.session.get(SIGN_OUT)
        response = super().post(request, *args, **kwargs)
        return page(request, "accounts/signing/signed_out.html", {"sign_out": sign_out}) if sign_out else response


@form_page
class ResetPassword(NeedsPasswords, views.PasswordResetView):
    """Responds in the same way to known and unknown addresses."""

    template_name = "accounts/signing/reset.html"
    email_template_name = "accounts/signing/reset_mail.txt"
    subject_template_name = "accounts/signing/reset_subject.txt"
    form_class = ResetForm
    success_url = reverse_lazy("accounts:password-reset-sent")

    def form_valid(self, form: Any) -> HttpResponse:
        limits.spend(limits.RESETS_BY_ADDRESS, limits.client_ip(self.request))
        limits.spend(limits.RESETS_BY_MAIL, form.cleaned_data["email"])
        return super().form_valid(form)


class ResetSent(NeedsPasswords, views.PasswordResetDoneView):
    template_name = "accounts/signing/reset_sent.html"


@form_page
class ChooseNewPassword(NeedsPasswords, views.PasswordResetConfirmView):
    template_name = "accounts/signing/new_password.html"
    form_class = NewPasswordForm
    success_url = reverse_lazy("home")

    def form_valid(self, form: Any) -> HttpResponse:
        """Do the same as Django, and record it in the audit log."""
        user, revoked = reset_password(form=form)
        messages.success(self.request, _("Password changed.") + say_revoked(revoked))
        del self.request.session[views.INTERNAL_RESET_SESSION_TOKEN]
        login(self.request, user, backend="evalapp.accounts.backends.PasswordBackend")
        return redirect(self.get_success_url())
