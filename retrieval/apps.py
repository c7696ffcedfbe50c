from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "retrieval"

    def ready(self) -> None:
        from annotation.services import hooks
        from evalapp.common import hooks as common_hooks

        from . import jobs  # noqa: F401  (registers the kinds of job of this app)

        common_hooks.PROJECT_CLEANERS.register("retrieval.services.corpora:clear_project")
        common_hooks.BACKUP_FILES.register("retrieval.selectors.backup_files:list_backup_files")
        common_hooks.SEARCHES.register("retrieval.selectors.corpora:find_matches")
        common_hooks.AFTER_RESTORE.register("retrieval.pipelines.restored:build_indexes")
        common_hooks.DOCTOR_CHECKS.register("retrieval.services.doctoring:check_server")
        common_hooks.DOCTOR_CHECKS.register("retrieval.services.doctoring:checks")
        hooks.find_candidates.register("retrieval.services.candidates:find_candidates")
        hooks.list_corpora.register("retrieval.selectors.corpora:list_choices")
