"""The kinds of background job of this app."""

from django.utils.translation import gettext_lazy as _

from evalapp.common.jobs import Job, register

register(
    Job(
        "import",
        "cpu",
        "annotation.pipelines.imports:run",
        "Check uploaded files and take them in.",
        request="annotation.services.uploads:import_checked",
        params="annotation.services.uploads:ImportOptions",
        label=_("Import"),
        give_up="annotation.services.uploads:give_up_import",
    )
)
register(
    Job(
        "export",
        "cpu",
        "annotation.pipelines.exports:run",
        "Write the project as an interchange folder.",
        request="annotation.services.exports:start_export",
        params="annotation.exporters.options:ExportOptions",
        label=_("Export"),
        give_up="annotation.services.exports:give_up_export",
        gone="annotation.selectors.run_results:export_gone",
    )
)
register(
    Job(
        "open_campaign",
        "cpu",
        "annotation.pipelines.campaigns:open_campaign",
        "Make the units of a campaign.",
        label=_("Opening of a campaign"),
        gone="annotation.selectors.run_results:campaign_gone",
    )
)
register(
    Job(
        "search",
        "cpu",
        "annotation.pipelines.search:run",
        "Read the texts of a large project for searching.",
        label=_("Texts for searching"),
    )
)
