"""Addresses of the ground's pages: home, overview, runs and health."""

from django.urls import path

from .views import health, home

urlpatterns = [
    path("", home.home, name="home"),
    path("projects/<slug:slug>/", home.overview, name="project"),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
]
