"""Addresses of the ground's pages: home and health."""

from django.urls import path

from .views import health, home

urlpatterns = [
    path("", home.home, name="home"),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
]
