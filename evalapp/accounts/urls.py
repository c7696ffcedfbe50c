"""Addresses of this room's pages."""

app_name = "accounts"
urlpatterns: list = []
