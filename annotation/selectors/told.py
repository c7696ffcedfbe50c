"""What other installations told of campaigns that took place there, as `campaigns.jsonl` brought it."""

from __future__ import annotations

from typing import Any

from evalapp.accounts.models import Project

#: The member of `Project.meta` that keeps it: name of the campaign -> its row.
TOLD = "campaigns_elsewhere"


def told_campaigns(project: Project) -> dict[str, dict[str, Any]]:
    return dict(project.meta.get(TOLD, {}))
