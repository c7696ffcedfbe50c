from django.apps import AppConfig


class ScoringConfig(AppConfig):
    name = "scoring"

    def ready(self) -> None:
        from annotation.services import hooks
        from evalapp.common import hooks as common_hooks
        from evalapp.common import overview

        from . import jobs  # noqa: F401  (registers the background jobs)
        from .views import overview as ours

        common_hooks.PROJECT_CLEANERS.register("scoring.services.training:remove_artefacts")
        common_hooks.BACKUP_FILES.register("scoring.selectors.backup_files:list_backup_files")
        common_hooks.PROJECT_CLEANERS.register("scoring.services.columns:remove_columns")
        hooks.register_dependant("scores", "scoring.selectors.score_sets:count_of_upload")
        hooks.register_dependant(
            "snapshots and combinations with its filters", "scoring.selectors.snapshots:count_of_filters"
        )
        hooks.register_export(
            prepare="scoring.services.exports:refresh_tables",
            rows="scoring.selectors.exports:rows",
            documents="scoring.selectors.exports:documents",
            check="scoring.pipelines.restore:check",
            store="scoring.pipelines.restore:store",
            undo="scoring.services.undo:remove_imported_scores",
        )
        hooks.register_reliability("scoring.services.reliability:predict_reliability")
        hooks.register_reliability_evaluators("scoring.services.reliability:list_evaluators")
        overview.register_section("leaderboard", 30, ours.leaderboard_section)
        overview.register_step("scores", 40, ours.scores_step)
        overview.register_step("rankings", 50, ours.rankings_step)
