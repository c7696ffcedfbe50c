from django.apps import AppConfig


class ScoringConfig(AppConfig):
    name = "scoring"

    def ready(self) -> None:
        from . import jobs  # noqa: F401  (registers the kinds of job of this room)
