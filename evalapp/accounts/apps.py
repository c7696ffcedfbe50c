from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "evalapp.accounts"
    label = "accounts"
