from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate
        from django.utils.translation import gettext_lazy as _

        from evalapp.common import hooks as common_hooks
        from evalapp.common import overview

        from . import jobs  # noqa: F401  (registers the kinds of job of this room)
        from .triggers import after_migrate
        from .views import campaign_overview
        from .views import overview as data

        common_hooks.PROJECT_CLEANERS.register("annotation.services.uploads:clear_project")
        common_hooks.PROJECT_CLEANERS.register("annotation.services.participants:close_accounts")
        common_hooks.BACKUP_FILES.register("annotation.selectors.backup_files:list_backup_files")
        common_hooks.OWN_DATA.register("annotation.services.own_data:own_parts")
        common_hooks.WITHDRAW_TEXTS.register("annotation.services.own_data:withdraw_texts")
        common_hooks.SEARCHES.register("annotation.selectors.project_search:find_matches")
        common_hooks.EVENT_FINDERS.register("annotation.services.campaign_events:find_campaign_events")
        common_hooks.WEEK_REPORTERS.register("annotation.services.campaign_events:report_week")
        post_migrate.connect(after_migrate, sender=self)
        overview.register_figures("data", 10, data.count_data)
        overview.register_count(_("Items"), 10, data.count_items)
        overview.register_count(_("Outputs"), 11, data.count_outputs)
        overview.register_step("data", 10, data.make_data_step)
        overview.register_section("campaigns", 20, campaign_overview.render_campaigns_section)
        overview.register_section("writing", 25, campaign_overview.render_writing_section)
        overview.register_step("campaigns", 30, campaign_overview.make_campaign_step)
        overview.register_step("writing", 45, campaign_overview.make_writing_step)
