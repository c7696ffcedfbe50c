from django.apps import AppConfig


class ScoringConfig(AppConfig):
    name = "scoring"

    def ready(self) -> None:
        from annotation.services import hooks
        from evalapp.common import hooks as common_hooks
        from evalapp.common import overview
        from evalapp.hub_access import forbid_access

        from . import jobs  # noqa: F401  (registers the background jobs)
        from .views import overview as ours

        forbid_access()  # only the command `hub` contacts it
        common_hooks.PROJECT_CLEANERS.register("scoring.services.evaluators:remove_artefacts")
        common_hooks.BACKUP_FILES.register("scoring.selectors.backup_files:list_backup_files")
        common_hooks.PROJECT_CLEANERS.register("scoring.services.columns:remove_columns")
        common_hooks.DOCTOR_CHECKS.register("scoring.services.doctoring:check_plugins")
        common_hooks.DOCTOR_CHECKS.register("scoring.services.doctoring:check_endpoints")
        common_hooks.SEARCHES.register("scoring.selectors.project_search:find_matches")
        common_hooks.EVENT_FINDERS.register("scoring.services.assistant:queue_refits")
        hooks.register_dependant("scores", "scoring.selectors.score_sets:count_of_upload")
        hooks.register_dependant(
            "snapshots and combinations with its filters", "scoring.selectors.snapshots:count_of_filters"
        )
        hooks.prepare_export.register("scoring.services.leaderboards:refresh_tables")
        hooks.read_exported_rows.register("scoring.selectors.exports:rows")
        hooks.read_exported_answers.register("scoring.selectors.judge_answers:iterate_exported_answers")
        hooks.make_exported_documents.register("scoring.selectors.exports:documents")
        hooks.check_results.register("scoring.pipelines.restore:check")
        hooks.store_results.register("scoring.pipelines.restore:store")
        hooks.undo_results.register("scoring.services.undo:remove_imported_scores")
        hooks.predict_reliability.register("scoring.services.reliability:predict_reliability")
        hooks.list_reliability_evaluators.register("scoring.services.reliability:list_evaluators")
        hooks.describe_savings.register("scoring.selectors.campaign_savings:describe_savings")
        overview.register_section("leaderboard", 30, ours.leaderboard_section)
        overview.register_step("scores", 40, ours.scores_step)
        overview.register_step("rankings", 50, ours.rankings_step)
