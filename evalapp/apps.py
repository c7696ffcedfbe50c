"""The ground as a Django app: it carries the management commands and wires the rooms."""

from django.apps import AppConfig


class EvalappConfig(AppConfig):
    name = "evalapp"
