"""Health of the web process, for supervisors and load balancers, and figures for Prometheus; no login."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from evalapp.common import health

LOCAL = {"127.0.0.1", "::1"}
#: What proxies add: who asks through one is not on this machine.
PROXY = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded")


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """503 while the database cannot be asked or nothing can be stored; the other parts are reported, pages work without
    them."""
    parts = health.parts()
    fine = health.is_ready(parts)
    return JsonResponse({"status": "ok" if fine else "unavailable", **parts}, status=200 if fine else 503)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For who has METRICS_TOKEN, and for programs on this machine that ask without a proxy. For others it is not
    there."""
    if not _may_read(request):
        raise Http404
    return HttpResponse(health.exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")


def _may_read(request: HttpRequest) -> bool:
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and kind == "Bearer":
        return hmac.compare_digest(given.encode(), settings.METRICS_TOKEN.encode())
    by_proxy = any(name in request.headers for name in PROXY)
    return request.META.get("REMOTE_ADDR") in LOCAL and not by_proxy
