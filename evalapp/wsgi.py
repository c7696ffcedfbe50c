"""Entry point of the web process (WSGI)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
application = get_wsgi_application()

from django.conf import settings  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from evalapp.common.database_timeout import limit_waits  # noqa: E402

limit_waits(settings.DATABASE_TIMEOUT)

# Import all views before gunicorn forks instead of in the first request of each worker.
_ = get_resolver().url_patterns
