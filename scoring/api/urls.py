"""Addresses of this room under /api/v1/."""


urlpatterns: list = []
