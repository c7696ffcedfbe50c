"""URLs of home, overview, runs, documentation and health."""

from django.urls import path

from .views import documentation, health, home, runs, search

urlpatterns = [
    path("", home.home, name="home"),
    path("projects/<slug:slug>/", home.overview, name="project"),
    path("projects/<slug:slug>/runs/", runs.run_list, name="run-list"),
    path("projects/<slug:slug>/runs/<int:pk>/", runs.run_show, name="run"),
    path("projects/<slug:slug>/runs/<int:pk>/cancel/", runs.run_cancel, name="run-cancel"),
    path("projects/<slug:slug>/runs/<int:pk>/retry/", runs.run_retry, name="run-retry"),
    path("projects/<slug:slug>/search/", search.search, name="project-search"),
    path("docs/", documentation.show, name="docs"),
    path("docs/errors", documentation.errors, name="docs-errors"),
    path("docs/search/", documentation.search, name="docs-search"),
    path("docs/images/<path:name>", documentation.image, name="docs-image"),
    path("docs/<path:name>/", documentation.show, name="docs-page"),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
    path("metrics", health.metrics, name="metrics"),
]
