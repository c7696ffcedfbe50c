from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "retrieval"

    def ready(self) -> None:
        from annotation.services import hooks
        from evalapp.common.backup.hooks import register_files, register_restored
        from evalapp.common.cleaners import register_cleaner
        from evalapp.common.doctoring import register_checks

        from . import jobs  # noqa: F401  (registers the kinds of job of this room)

        register_cleaner("retrieval.services.corpora:clear_project")
        register_files("retrieval.selectors.backup_files:list_backup_files")
        register_restored("retrieval.pipelines.restored:build_indexes")
        register_checks("retrieval.services.doctoring:server_checks")
        register_checks("retrieval.services.doctoring:checks")
        hooks.register_candidates("retrieval.services.candidates:candidates_for")
        hooks.register_corpora("retrieval.selectors.corpora:choices_for")
