"""Whether what a run made is still there, for its page."""

from __future__ import annotations

from annotation.models import Campaign
from evalapp.common.models import Run


def campaign_gone(run: Run) -> str:
    """That the campaign which was opened was deleted, or nothing."""
    number = (run.result or {}).get("campaign")
    if not number or Campaign.objects.filter(project=run.project_id, pk=number).exists():
        return ""
    return "This campaign was deleted since."


def export_gone(run: Run) -> str:
    """That the files of an export were deleted, or nothing."""
    return "The files of this export were deleted since." if (run.result or {}).get("deleted") else ""
