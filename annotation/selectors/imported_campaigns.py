"""Campaigns of other installations, as described in an imported `campaigns.jsonl`."""

from typing import Any

from evalapp.accounts.models import Project

#: The key in `Project.meta`; its value maps names of campaigns to their rows.
IMPORTED_CAMPAIGNS = "campaigns_elsewhere"


def list_imported_campaigns(project: Project) -> dict[str, dict[str, Any]]:
    return dict(project.meta.get(IMPORTED_CAMPAIGNS, {}))
