"""Settings as Django reads them; `base` holds them, `env` reads the environment, `test` adapts them to tests."""

from .base import *  # noqa: F403
