"""Entry point of the web process (WSGI)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
application = get_wsgi_application()

from django.conf import settings  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from evalapp.common.database_timeout import limit_waits  # noqa: E402

limit_waits(settings.DATABASE_TIMEOUT)

# The addresses and what they import, once before gunicorn forks, not in each worker's first request.
_ = get_resolver().url_patterns
