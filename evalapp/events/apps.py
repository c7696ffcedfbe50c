from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "evalapp.events"
    label = "events"

    def ready(self) -> None:
        from evalapp.common import hooks

        hooks.RUN_ENDED.register("evalapp.events.services.recording:record_run_end")
