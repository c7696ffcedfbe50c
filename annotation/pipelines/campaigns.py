"""Opens a large campaign in a worker."""

from typing import Any

from annotation.services.judging_plans import make_units
from evalapp.common.runner import RunContext


def open_campaign(context: RunContext, campaign: int) -> dict[str, Any]:
    """Create units and slots of a campaign in one transaction. Idempotent."""
    opened = make_units(
        campaign_id=campaign,
        user=context.user,
        progress=lambda done, total: context.progress(done, total, unit="rows", phase="making units and slots"),
    )
    return {
        "campaign": opened.pk,
        "units": opened.unit_count,
        "slots": opened.unit_count * opened.overlap,
        "url": f"/projects/{context.project.slug}/campaigns/{opened.pk}/",
    }
