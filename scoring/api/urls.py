"""Addresses of scoring under /api/v1/."""

from django.urls import include, path

from scoring.boards.registry import list_boards

from . import agreement, boards, choosing, judges, online, references, shared_reports, snapshots, trained, views

#: Addresses below a project.
PROJECT = [
    path("evaluators/", views.EvaluatorList.as_view(), name="api-evaluator-list"),
    path("evaluators/trained/", trained.TrainedList.as_view(), name="api-trained-list"),
    path("evaluators/trained/<slug:evaluator>/", trained.TrainedShow.as_view(), name="api-trained"),
    path(
        "evaluators/trained/<slug:evaluator>/files/<path:name>", trained.TrainedFile.as_view(), name="api-trained-file"
    ),
    path("evaluators/<slug:evaluator>/alignment/", choosing.Alignment.as_view(), name="api-evaluator-alignment"),
    path("evaluators/<slug:evaluator>/sample/", choosing.Sample.as_view(), name="api-evaluator-sample"),
    path("evaluators/<slug:evaluator>/report/", judges.EvaluatorReport.as_view(), name="api-evaluator-report"),
    path("reference-sets/", references.ReferenceSetList.as_view(), name="api-reference-set-list"),
    path("reference-sets/<str:name>/", references.ReferenceSetShow.as_view(), name="api-reference-set"),
    path(
        "reference-sets/<str:name>/comparison/<str:other>/",
        references.ReferenceSetComparison.as_view(),
        name="api-reference-set-comparison",
    ),
    path("reference-sets/<str:name>/traces/", references.TraceList.as_view(), name="api-reference-set-traces"),
    path("reports/", shared_reports.ReportList.as_view(), name="api-report-list"),
    path("snapshots/", snapshots.SnapshotList.as_view(), name="api-snapshot-list"),
    path("snapshots/<slug:name>/", snapshots.SnapshotShow.as_view(), name="api-snapshot"),
    path(
        "snapshots/<slug:name>/comparison/<slug:other>/",
        snapshots.SnapshotComparison.as_view(),
        name="api-snapshot-comparison",
    ),
    path("agreement/", agreement.Agreement.as_view(), name="api-agreement"),
    path("power/", agreement.Power.as_view(), name="api-power"),
    path("rater-filters/", agreement.FilterList.as_view(), name="api-rater-filter-list"),
    path("rater-filters/<slug:name>/", agreement.FilterShow.as_view(), name="api-rater-filter"),
    path("scores/", views.ScoreList.as_view(), name="api-score-list"),
    path("scores/<int:pk>/", views.ScoreSetShow.as_view(), name="api-score-set"),
    *(
        path(f"leaderboards/{kind}/", boards.make_view(kind).as_view(), name=f"api-leaderboard-{kind}")
        for kind, board in list_boards().items()
        if board.query.in_leaderboards
    ),
    path("leaderboards/<slug:kind>/table.<slug:ending>", boards.BoardFile.as_view(), name="api-leaderboard-file"),
    path("leaderboards/<slug:kind>/", boards.AnyBoard.as_view(), name="api-leaderboard"),
]
urlpatterns = [
    path("evaluators/", views.Catalogue.as_view(), name="api-catalogue"),
    path("evaluators/<slug:name>/score/", online.OnlineScore.as_view(), name="api-online-score"),
    path("evaluators/<slug:name>/compare/", online.OnlineComparison.as_view(), name="api-online-compare"),
    path("evaluators/<slug:name>/reliability/", online.OnlineReliability.as_view(), name="api-online-reliability"),
    path("reports/<int:pk>/", shared_reports.ReportShow.as_view(), name="api-report"),
    path("reports/<int:pk>/report.pdf", shared_reports.ReportFile.as_view(), name="api-report-pdf"),
    path("projects/<slug:slug>/", include(PROJECT)),
]
