"""Addresses of this room under /api/v1/."""

from django.urls import path

from . import views

urlpatterns = [
    path("evaluators/", views.Catalogue.as_view(), name="api-catalogue"),
    path("projects/<slug:slug>/evaluators/", views.EvaluatorList.as_view(), name="api-evaluator-list"),
    path("projects/<slug:slug>/scores/", views.ScoreList.as_view(), name="api-score-list"),
    path("projects/<slug:slug>/leaderboards/systems/", views.SystemsBoard.as_view(), name="api-leaderboard-systems"),
    path(
        "projects/<slug:slug>/leaderboards/evaluators/",
        views.EvaluatorsBoard.as_view(),
        name="api-leaderboard-evaluators",
    ),
]
