from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        from . import jobs  # noqa: F401  (registers the kinds of job of this room)
