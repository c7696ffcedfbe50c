"""Entry point of the web process (WSGI)."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
_django = get_wsgi_application()

from django.conf import settings  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from evalapp.common.database_timeout import limit_waits  # noqa: E402

limit_waits(settings.DATABASE_TIMEOUT)

# Import all views before gunicorn forks instead of in the first request of each worker.
_ = get_resolver().url_patterns


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a request, whether or not the proxy has removed SUB_PATH from its address."""
    path = environ["PATH_INFO"]
    if settings.SUB_PATH and f"{path}/".startswith(f"{settings.SUB_PATH}/"):
        environ["PATH_INFO"] = path.removeprefix(settings.SUB_PATH) or "/"
    return _django(environ, start_response)
