"""The page on which everybody chooses colours, size of text and contrast; signed in or not."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from evalapp.accounts.services import update_display
from evalapp.common.display import COOKIE, COOKIE_AGE, make_display
from evalapp.common.pages import page


@login_not_required
@require_http_methods(["GET", "POST"])
def display(request: HttpRequest) -> HttpResponse:
    """Colours, size of text and contrast. POST stores them and returns to the page `next`."""
    if request.method == "GET":
        return page(request, "accounts/display.html", {})
    chosen = make_display(request.POST.dict())
    if request.user.is_authenticated:
        update_display(user=request.user, display=chosen)
    after = request.POST.get("next", "")
    inside = after.startswith("/") and url_has_allowed_host_and_scheme(after, allowed_hosts=None)
    response = redirect(after if inside else "accounts:display")
    response.set_cookie(
        COOKIE, chosen.cookie, max_age=COOKIE_AGE, path=settings.SESSION_COOKIE_PATH, samesite="Lax", httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
    )  # fmt: skip
    return response
