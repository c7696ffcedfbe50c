"""Addresses of the pages of scoring."""

from django.urls import path, register_converter

from scoring.boards.registry import BoardKind

from .views import (
    agreement,
    boards,
    combining,
    evaluators,
    live,
    plots,
    references,
    robustness,
    scores,
    snapshots,
    steps,
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
P = "projects/<slug:slug>/"
urlpatterns = [
    path(P + "evaluators/", evaluators.evaluator_list, name="evaluator-list"),
    path(P + "evaluators/sentinels/", evaluators.score_sentinels, name="score-sentinels"),
    path(P + "evaluators/apply/<slug:name>/", evaluators.apply, name="evaluator-apply"),
    path(P + "evaluators/train/<slug:name>/", trained.train, name="train"),
    path(P + "evaluators/train/<slug:name>/start/", trained.train_start, name="train-start"),
    path(P + "evaluators/upload/", trained.upload, name="evaluator-upload"),
    path(P + "evaluators/robustness/", robustness.robustness, name="robustness"),
    path(P + "evaluators/combine/", combining.combine, name="combine"),
    path(P + "evaluators/<slug:evaluator>/", evaluators.evaluator, name="evaluator"),
    path(P + "evaluators/<slug:evaluator>/again/", combining.again, name="combine-again"),
    path(P + "evaluators/<slug:evaluator>/scores.csv", evaluators.scores_csv, name="scores-csv"),
    path(P + "evaluators/<slug:evaluator>/scores/delete/", scores.delete, name="scores-delete"),
    path(P + "evaluators/<slug:evaluator>/distribution.svg", plots.distribution_svg, name="distribution-svg"),
    path(P + "evaluators/<slug:evaluator>/delete/", trained.delete, name="evaluator-delete"),
    path(P + "evaluators/<slug:evaluator>/files/<path:name>", trained.evaluator_file, name="evaluator-file"),
    path(P + "evaluators/<slug:evaluator>/artefact.tar", trained.evaluator_tar, name="evaluator-tar"),
    path(P + "runs/<int:pk>/curve/", trained.training_curve, name="training-curve"),
    path(P + "systems/", boards.systems, name="systems"),
    path(P + "systems/plot.svg", plots.board_svg, {"kind": "systems"}, name="systems-svg"),
    path(P + "systems/plot.pdf", plots.board_svg, {"kind": "systems", "ending": "pdf"}, name="systems-pdf"),
    path(P + "systems/games/", boards.play, name="games"),
    path(P + "systems/steps/", steps.steps, name="steps"),
    path(P + "systems/steps/choose/", steps.choose, name="choose"),
    path(P + "systems/steps/<slug:panel>.svg", plots.steps_svg, name="steps-svg"),
    path(P + "systems/steps/<slug:panel>.pdf", plots.steps_svg, {"ending": "pdf"}, name="steps-pdf"),
    path(P + "systems/table.<table_ending:ending>", boards.board_file, {"kind": "systems"}, name="systems-file"),
    path(P + "evaluation/", boards.board, {"kind": "evaluators"}, name="evaluation"),
    path(P + "evaluation/plot.svg", plots.board_svg, {"kind": "evaluators"}, name="evaluation-svg"),
    path(P + "evaluation/plot.pdf", plots.board_svg, {"kind": "evaluators", "ending": "pdf"}, name="evaluation-pdf"),
    path(
        P + "evaluation/table.<table_ending:ending>", boards.board_file, {"kind": "evaluators"}, name="evaluation-file"
    ),
    path(P + "evaluation/<further:kind>/", boards.board, name="evaluation-board"),
    path(P + "evaluation/<further:kind>/plot.svg", plots.board_svg, name="evaluation-board-svg"),
    path(P + "evaluation/<further:kind>/plot.pdf", plots.board_svg, {"ending": "pdf"}, name="evaluation-board-pdf"),
    path(
        P + "evaluation/<further:kind>/table.<table_ending:ending>",
        boards.board_file,
        name="evaluation-board-file",
    ),
    path(P + "evaluation/<slug:evaluator>/scatter.svg", plots.scatter_svg, name="scatter-svg"),
    path(P + "evaluation/<slug:evaluator>/scatter.pdf", plots.scatter_svg, {"ending": "pdf"}, name="scatter-pdf"),
    path(P + "snapshots/", snapshots.snapshot_list, name="snapshots"),
    path(P + "snapshots/compare/", snapshots.compare, name="snapshots-compare"),
    path(P + "snapshots/<slug:name>/", snapshots.snapshot, name="snapshot"),
    path(P + "snapshots/<slug:name>/delete/", snapshots.delete, name="snapshot-delete"),
    path(P + "snapshots/<slug:name>/table.<table_ending:ending>", snapshots.snapshot_file, name="snapshot-file"),
    path(P + "references/writing/<int:pk>/gold/", writing_gold.writing_gold, name="writing-gold"),
    path(P + "agreement/", agreement.agreement, name="agreement"),
    path(P + "agreement/table.<table_ending:ending>", agreement.agreement_file, name="agreement-file"),
    path(P + "agreement/raters/", agreement.raters, name="agreement-raters"),
    path(P + "agreement/calibration/", agreement.calibration, name="agreement-calibration"),
    path(P + "agreement/power/", agreement.power, name="agreement-power"),
    path(P + "agreement/filters/<slug:name>/<filter_move:move>/", agreement.filter_move, name="rater-filter-move"),
    path("my/writing/<slug:public>/score/", live.score, name="live-score"),
    path(P + "references/", references.reference_set_list, name="reference-sets"),
    path(P + "references/select-references/", references.select_references, name="select-references"),
    path(P + "references/annotate/", references.select_references, name="annotate"),  # its former address
    path(P + "references/compare/", references.compare, name="reference-sets-compare"),
    path(P + "references/merge/", references.merge, name="reference-sets-merge"),
    path(P + "references/enhanced/", boards.board, {"kind": "enhanced"}, name="enhanced"),
    path(
        P + "references/enhanced/table.<table_ending:ending>",
        boards.board_file,
        {"kind": "enhanced"},
        name="enhanced-file",
    ),
    path(P + "references/curves/", references.reliability_curves, name="reliability-curves"),
    path(P + "references/curves/<int:pk>/<slug:panel>.svg", plots.curves_svg, name="reliability-curves-svg"),
    path(P + "references/<str:name>/", references.reference_set, name="reference-set"),
    path(P + "references/<str:name>/delete/", references.delete, name="reference-set-delete"),
    path(P + "references/<str:name>/references.jsonl", references.reference_set_file, name="reference-set-file"),
    path(P + "items/<int:item>/scores/", scores.item_scores, name="item-scores"),
]
