"""Health for supervisors and load balancers, and metrics for Prometheus; without login."""

import hmac

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from evalapp.common import health

LOCAL = {"127.0.0.1", "::1"}
#: Headers that proxies add; such a request does not come from this machine.
PROXY = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded")


@login_not_required
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@login_not_required
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Report all parts; status 503 if the database or the disk is unavailable. Pages work without the others."""
    parts = health.parts()
    is_ready = health.is_ready(parts)
    return JsonResponse({"status": "ok" if is_ready else "unavailable", **parts}, status=200 if is_ready else 503)


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics to clients with METRICS_TOKEN and to programs on this machine, not behind a proxy; 404 to
    others."""
    if not _may_read(request):
        raise Http404
    return HttpResponse(health.exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")


def _may_read(request: HttpRequest) -> bool:
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and kind == "Bearer":
        return hmac.compare_digest(given.encode(), settings.METRICS_TOKEN.encode())
    by_proxy = any(name in request.headers for name in PROXY)
    return request.META.get("REMOTE_ADDR") in LOCAL and not by_proxy
