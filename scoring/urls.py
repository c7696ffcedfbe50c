"""Addresses of this room's pages."""

from django.urls import path, register_converter

from .views import boards, evaluators, items, plots, trained


class Ending:
    """The files a leaderboard comes as."""

    regex = "csv|json|tex"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(Ending, "table_ending")

app_name = "scoring"
P = "projects/<slug:slug>/"
urlpatterns = [
    path(P + "evaluators/", evaluators.evaluator_list, name="evaluator-list"),
    path(P + "evaluators/sentinels/", evaluators.score_sentinels, name="score-sentinels"),
    path(P + "evaluators/apply/<slug:name>/", evaluators.apply, name="evaluator-apply"),
    path(P + "evaluators/train/<slug:name>/", trained.train, name="train"),
    path(P + "evaluators/train/<slug:name>/start/", trained.train_start, name="train-start"),
    path(P + "evaluators/upload/", trained.upload, name="evaluator-upload"),
    path(P + "evaluators/<slug:evaluator>/", evaluators.evaluator, name="evaluator"),
    path(P + "evaluators/<slug:evaluator>/scores.csv", evaluators.scores_csv, name="scores-csv"),
    path(P + "evaluators/<slug:evaluator>/distribution.svg", plots.distribution_svg, name="distribution-svg"),
    path(P + "evaluators/<slug:evaluator>/delete/", trained.delete, name="evaluator-delete"),
    path(P + "evaluators/<slug:evaluator>/files/<path:name>", trained.evaluator_file, name="evaluator-file"),
    path(P + "evaluators/<slug:evaluator>/artefact.tar", trained.evaluator_tar, name="evaluator-tar"),
    path(P + "runs/<int:pk>/curve/", trained.training_curve, name="training-curve"),
    path(P + "systems/", boards.systems, name="systems"),
    path(P + "systems/plot.svg", plots.systems_svg, name="systems-svg"),
    path(P + "systems/table.<table_ending:ending>", boards.systems_file, name="systems-file"),
    path(P + "evaluation/", boards.evaluation, name="evaluation"),
    path(P + "evaluation/plot.svg", plots.evaluation_svg, name="evaluation-svg"),
    path(P + "evaluation/table.<table_ending:ending>", boards.evaluation_file, name="evaluation-file"),
    path(P + "evaluation/<slug:evaluator>/scatter.svg", plots.scatter_svg, name="scatter-svg"),
    path(P + "items/<int:item>/scores/", items.item_scores, name="item-scores"),
]
