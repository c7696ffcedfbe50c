from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "evalapp.accounts"
    label = "accounts"

    def ready(self) -> None:
        from . import schema  # noqa: F401 - registers itself
