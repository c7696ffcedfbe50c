from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "evalapp.common"
    label = "common"
