"""Addresses of scoring under /api/v1/."""

from django.urls import path, register_converter

from scoring.boards.registry import BoardKind, list_boards

from . import agreement, boards, online, references, snapshots, trained, views

register_converter(BoardKind, "board")
P = "projects/<slug:slug>/"
urlpatterns = [
    path("evaluators/", views.Catalogue.as_view(), name="api-catalogue"),
    path("evaluators/<slug:name>/score/", online.OnlineScore.as_view(), name="api-online-score"),
    path("evaluators/<slug:name>/compare/", online.OnlineComparison.as_view(), name="api-online-compare"),
    path("evaluators/<slug:name>/reliability/", online.OnlineReliability.as_view(), name="api-online-reliability"),
    path(P + "evaluators/", views.EvaluatorList.as_view(), name="api-evaluator-list"),
    path(P + "evaluators/trained/", trained.TrainedList.as_view(), name="api-trained-list"),
    path(P + "evaluators/trained/<slug:evaluator>/", trained.TrainedShow.as_view(), name="api-trained"),
    path(
        P + "evaluators/trained/<slug:evaluator>/files/<path:name>",
        trained.TrainedFile.as_view(),
        name="api-trained-file",
    ),
    path(P + "reference-sets/", references.ReferenceSetList.as_view(), name="api-reference-set-list"),
    path(P + "reference-sets/<str:name>/", references.ReferenceSetShow.as_view(), name="api-reference-set"),
    path(
        P + "reference-sets/<str:name>/comparison/<str:other>/",
        references.ReferenceSetComparison.as_view(),
        name="api-reference-set-comparison",
    ),
    path(P + "reference-sets/<str:name>/traces/", references.TraceList.as_view(), name="api-reference-set-traces"),
    path(P + "snapshots/", snapshots.SnapshotList.as_view(), name="api-snapshot-list"),
    path(P + "snapshots/<slug:name>/", snapshots.SnapshotShow.as_view(), name="api-snapshot"),
    path(
        P + "snapshots/<slug:name>/comparison/<slug:other>/",
        snapshots.SnapshotComparison.as_view(),
        name="api-snapshot-comparison",
    ),
    path(P + "agreement/", agreement.Agreement.as_view(), name="api-agreement"),
    path(P + "power/", agreement.Power.as_view(), name="api-power"),
    path(P + "rater-filters/", agreement.FilterList.as_view(), name="api-rater-filter-list"),
    path(P + "rater-filters/<slug:name>/", agreement.FilterShow.as_view(), name="api-rater-filter"),
    path(P + "scores/", views.ScoreList.as_view(), name="api-score-list"),
    path(P + "scores/<int:pk>/", views.ScoreSetShow.as_view(), name="api-score-set"),
    *(
        path(P + f"leaderboards/{kind}/", boards.make_view(kind).as_view(), name=f"api-leaderboard-{kind}")
        for kind, board in list_boards().items()
        if board.query.in_leaderboards
    ),
    path(P + "leaderboards/<board:kind>/", boards.AnyBoard.as_view(), name="api-leaderboard"),
]
