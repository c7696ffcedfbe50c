"""Entry point of the web process (ASGI)."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
application = get_asgi_application()

from django.conf import settings  # noqa: E402

from evalapp.common.database_timeout import limit_waits  # noqa: E402

limit_waits(settings.DATABASE_TIMEOUT)
