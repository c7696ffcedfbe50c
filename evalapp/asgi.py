"""Entry point of the web process (ASGI)."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
application = get_asgi_application()
