"""URLs of runs below /api/v1/."""

from django.urls import path

from .runs import RunCancel, RunList, RunRetry, RunShow

urlpatterns = [
    path("projects/<slug:slug>/runs/", RunList.as_view(), name="api-run-list"),
    path("runs/<int:pk>/", RunShow.as_view(), name="api-run"),
    path("runs/<int:pk>/cancel/", RunCancel.as_view(), name="api-run-cancel"),
    path("runs/<int:pk>/retry/", RunRetry.as_view(), name="api-run-retry"),
]
