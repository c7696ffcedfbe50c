from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "evalapp.common"
    label = "common"

    def ready(self) -> None:
        from django.utils.translation import gettext, gettext_lazy, ngettext

        from .. import translation
        from . import hooks, overview, sqlite_lookups
        from .jobs import Job, register
        from .views import overview as sections

        translation.install(gettext, ngettext)
        sqlite_lookups.register()
        about, label = "Remove the contents of a deleted project.", gettext_lazy("Deletion of a project")
        register(Job("delete", "cpu", "evalapp.common.deletion:run", about, label=label))
        hooks.DOCTOR_CHECKS.register(
            "evalapp.common.audit_chain:checks", "evalapp.common.backup.nightly:check_nightly_backup"
        )
        overview.register_section("activity", 40, sections.render_activity)
        overview.register_step("people", 20, sections.make_people_step)
