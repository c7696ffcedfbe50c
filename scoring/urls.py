"""Addresses of the pages of scoring."""

from django.urls import include, path, register_converter

from scoring.boards.registry import BoardKind

from .views import (
    agreement,
    boards,
    choosing,
    combining,
    evaluators,
    judges,
    live,
    plots,
    references,
    robustness,
    scores,
    shared_reports,
    snapshots,
    steps,
    studies,
    trained,
    writing_gold,
)


class Ending:
    """Formats of the files of leaderboards."""

    regex = "csv|json|tex"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class FilterMove(Ending):
    """Changes of a filter of raters."""

    regex = "withdraw|restore"


register_converter(Ending, "table_ending")
register_converter(BoardKind, "further")
register_converter(FilterMove, "filter_move")

app_name = "scoring"
#: Addresses below a project.
PROJECT = [
    path("evaluators/", evaluators.evaluator_list, name="evaluator-list"),
    path("evaluators/score/", evaluators.score_selected, name="score-selected"),
    path("evaluators/sentinels/", evaluators.score_sentinels, name="score-sentinels"),
    path("evaluators/apply/<slug:name>/", evaluators.apply, name="evaluator-apply"),
    path("evaluators/train/<slug:name>/", trained.train, name="train"),
    path("evaluators/train/<slug:name>/start/", trained.train_start, name="train-start"),
    path("evaluators/upload/", trained.upload, name="evaluator-upload"),
    path("evaluators/robustness/", robustness.robustness, name="robustness"),
    path("evaluators/combine/", combining.combine, name="combine"),
    path("judges/", judges.judge, name="judge"),
    path("judges/template/", judges.template, name="judge-template"),
    path("evaluators/<slug:evaluator>/", evaluators.evaluator, name="evaluator"),
    path("evaluators/<slug:evaluator>/again/", combining.again, name="combine-again"),
    path("evaluators/<slug:evaluator>/report/", judges.report, name="judge-report"),
    path("evaluators/<slug:evaluator>/alignment/", choosing.alignment, name="alignment"),
    path("evaluators/<slug:evaluator>/sample/", choosing.sample, name="sample"),
    path("evaluators/<slug:evaluator>/answers.jsonl", judges.answers, name="judge-answers"),
    path("evaluators/<slug:evaluator>/scores.csv", evaluators.scores_csv, name="scores-csv"),
    path("evaluators/<slug:evaluator>/scores/delete/", scores.delete, name="scores-delete"),
    path("evaluators/<slug:evaluator>/distribution.svg", plots.distribution_svg, name="distribution-svg"),
    path(
        "evaluators/<slug:evaluator>/distribution.pdf",
        plots.distribution_svg,
        {"ending": "pdf"},
        name="distribution-pdf",
    ),
    path("evaluators/<slug:evaluator>/delete/", trained.delete, name="evaluator-delete"),
    path("evaluators/<slug:evaluator>/files/<path:name>", trained.evaluator_file, name="evaluator-file"),
    path("evaluators/<slug:evaluator>/artefact.tar", trained.evaluator_tar, name="evaluator-tar"),
    path("runs/<int:pk>/curve/", trained.training_curve, name="training-curve"),
    path("systems/", boards.systems, name="systems"),
    path("systems/plot.svg", plots.board_svg, {"kind": "systems"}, name="systems-svg"),
    path("systems/plot.pdf", plots.board_svg, {"kind": "systems", "ending": "pdf"}, name="systems-pdf"),
    path("systems/games/", boards.play, name="games"),
    path("systems/steps/", steps.steps, name="steps"),
    path("systems/steps/choose/", steps.choose, name="choose"),
    path("systems/steps/<slug:panel>.svg", plots.steps_svg, name="steps-svg"),
    path("systems/steps/<slug:panel>.pdf", plots.steps_svg, {"ending": "pdf"}, name="steps-pdf"),
    path("systems/table.<table_ending:ending>", boards.board_file, {"kind": "systems"}, name="systems-file"),
    path("evaluation/", boards.board, {"kind": "evaluators"}, name="evaluation"),
    path("evaluation/plot.svg", plots.board_svg, {"kind": "evaluators"}, name="evaluation-svg"),
    path("evaluation/plot.pdf", plots.board_svg, {"kind": "evaluators", "ending": "pdf"}, name="evaluation-pdf"),
    path("evaluation/table.<table_ending:ending>", boards.board_file, {"kind": "evaluators"}, name="evaluation-file"),
    path("evaluation/<further:kind>/", boards.board, name="evaluation-board"),
    path("evaluation/<further:kind>/plot.svg", plots.board_svg, name="evaluation-board-svg"),
    path("evaluation/<further:kind>/plot.pdf", plots.board_svg, {"ending": "pdf"}, name="evaluation-board-pdf"),
    path("evaluation/<further:kind>/table.<table_ending:ending>", boards.board_file, name="evaluation-board-file"),
    path("evaluation/<slug:evaluator>/scatter.svg", plots.scatter_svg, name="scatter-svg"),
    path("evaluation/<slug:evaluator>/scatter.pdf", plots.scatter_svg, {"ending": "pdf"}, name="scatter-pdf"),
    path("reports/", shared_reports.report_list, name="report-list"),
    path("reports/new/", shared_reports.create, name="report-create"),
    path("reports/<int:pk>/", shared_reports.report, name="report"),
    path("reports/<int:pk>/report.pdf", shared_reports.report_pdf, name="report-pdf"),
    path("reports/<int:pk>/revoke/", shared_reports.revoke, name="report-revoke"),
    path("snapshots/", snapshots.snapshot_list, name="snapshots"),
    path("snapshots/compare/", snapshots.compare, name="snapshots-compare"),
    path("snapshots/<slug:name>/", snapshots.snapshot, name="snapshot"),
    path("snapshots/<slug:name>/delete/", snapshots.delete, name="snapshot-delete"),
    path("snapshots/<slug:name>/plot.svg", plots.snapshot_svg, name="snapshot-svg"),
    path("snapshots/<slug:name>/plot.pdf", plots.snapshot_svg, {"ending": "pdf"}, name="snapshot-pdf"),
    path("snapshots/<slug:name>/table.<table_ending:ending>", snapshots.snapshot_file, name="snapshot-file"),
    path("studies/", studies.study_list, name="study-list"),
    path("studies/start/", studies.study_start, name="study-start"),
    path("studies/<int:pk>/", studies.study, name="study"),
    path("studies/<int:pk>/plot.svg", plots.study_svg, name="study-svg"),
    path("studies/<int:pk>/plot.pdf", plots.study_svg, {"ending": "pdf"}, name="study-pdf"),
    path("studies/<int:pk>/table.<table_ending:ending>", studies.study_file, name="study-file"),
    path("references/writing/<int:pk>/gold/", writing_gold.writing_gold, name="writing-gold"),
    path("agreement/", agreement.agreement, name="agreement"),
    path("agreement/plot.svg", plots.board_svg, {"kind": "agreement"}, name="agreement-svg"),
    path("agreement/plot.pdf", plots.board_svg, {"kind": "agreement", "ending": "pdf"}, name="agreement-pdf"),
    path("agreement/growth.svg", plots.growth_svg, name="agreement-growth-svg"),
    path("agreement/growth.pdf", plots.growth_svg, {"ending": "pdf"}, name="agreement-growth-pdf"),
    path("agreement/table.<table_ending:ending>", agreement.agreement_file, name="agreement-file"),
    path("agreement/raters/", agreement.raters, name="agreement-raters"),
    path("agreement/calibration/", agreement.calibration, name="agreement-calibration"),
    path("agreement/power/", agreement.power, name="agreement-power"),
    path("agreement/filters/<slug:name>/<filter_move:move>/", agreement.filter_move, name="rater-filter-move"),
    path("references/", references.reference_set_list, name="reference-sets"),
    path("references/select-references/", references.select_references, name="select-references"),
    path("references/annotate/", references.select_references, name="annotate"),  # its former address
    path("references/compare/", references.compare, name="reference-sets-compare"),
    path("references/merge/", references.merge, name="reference-sets-merge"),
    path("references/enhanced/", boards.board, {"kind": "enhanced"}, name="enhanced"),
    path(
        "references/enhanced/table.<table_ending:ending>", boards.board_file, {"kind": "enhanced"}, name="enhanced-file"
    ),
    path("references/enhanced/plot.svg", plots.board_svg, {"kind": "enhanced"}, name="enhanced-svg"),
    path("references/enhanced/plot.pdf", plots.board_svg, {"kind": "enhanced", "ending": "pdf"}, name="enhanced-pdf"),
    path("references/curves/", references.reliability_curves, name="reliability-curves"),
    path("references/curves/<int:pk>/<slug:panel>.svg", plots.curves_svg, name="reliability-curves-svg"),
    path(
        "references/curves/<int:pk>/<slug:panel>.pdf",
        plots.curves_svg,
        {"ending": "pdf"},
        name="reliability-curves-pdf",
    ),
    path("references/<str:name>/", references.reference_set, name="reference-set"),
    path("references/<str:name>/delete/", references.delete, name="reference-set-delete"),
    path("references/<str:name>/references.jsonl", references.reference_set_file, name="reference-set-file"),
    path("items/<int:item>/scores/", scores.item_scores, name="item-scores"),
]
urlpatterns = [
    path("my/writing/<slug:public>/score/", live.score, name="live-score"),
    path("reports/<str:secret>/", shared_reports.shared, name="shared-report"),
    path("reports/<str:secret>/report.pdf", shared_reports.shared_pdf, name="shared-report-pdf"),
    path("projects/<slug:slug>/", include(PROJECT)),
]
