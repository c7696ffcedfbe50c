"""The Django app with the management commands of the installation."""

from django.apps import AppConfig


class EvalappConfig(AppConfig):
    name = "evalapp"
