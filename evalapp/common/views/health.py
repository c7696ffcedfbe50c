"""Health of the web process, for supervisors and load balancers; no login."""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """503 while the database cannot be asked; the queue is reported but pages work without it."""
    from django.conf import settings

    parts = {"database": True, "queue": True}
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        parts["database"] = False
    try:
        import redis

        redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1, socket_timeout=1).ping()
    except redis.RedisError:
        parts["queue"] = False
    return JsonResponse(
        {"status": "ok" if parts["database"] else "unavailable", **parts},
        status=200 if parts["database"] else 503,
    )
