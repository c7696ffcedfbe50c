"""Django settings: `base` defines them, `env` reads environment variables, `test` adapts them to tests."""

import os

from evalapp.layout import prefer_own_packages

prefer_own_packages()

# `evalapp.settings.test` imports this package first and must be able to name its own data folder before `base` runs.
if os.environ.get("DJANGO_SETTINGS_MODULE", "evalapp.settings") == "evalapp.settings":
    from .base import *  # noqa: F403
