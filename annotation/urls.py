"""Addresses of this room's pages."""

app_name = "annotation"
urlpatterns: list = []
