"""Whether the results of a run still exist, for its page."""

from django.utils.translation import gettext as _

from annotation.models import Campaign
from evalapp.common.models import Run


def campaign_gone(run: Run) -> str:
    """A message if the campaign of the run was deleted, otherwise empty."""
    number = (run.result or {}).get("campaign")
    if not number or Campaign.objects.filter(project=run.project_id, pk=number).exists():
        return ""
    return _("This campaign was deleted.")


def export_gone(run: Run) -> str:
    """A message if the files of an export were deleted, otherwise empty."""
    return _("The files of this export were deleted.") if (run.result or {}).get("deleted") else ""
