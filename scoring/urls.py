"""Addresses of this room's pages."""

app_name = "scoring"
urlpatterns: list = []
