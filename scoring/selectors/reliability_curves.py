"""Curves of reliability that runs have computed. Drawing is in `plots`, computing in the pipeline."""

from __future__ import annotations

from evalapp.accounts.models import Project
from evalapp.common.models import Run

KIND = "reliability"
#: What a run can show, in the order of the page.
PANELS = {
    "size": "Reliability by number of references",
    "growth": "Gold reliability while references are added",
    "predicted": "Predicted reliability while references are added",
    "transfer": "Chosen for one metric, used by another",
    "transfer-other": "The same, the other way round",
}
LATEST = 10


def latest_curves(project: Project) -> list[Run]:
    """The last runs that ended with curves, the newest first."""
    rows = Run.objects.filter(project=project, kind=KIND, state=Run.State.SUCCEEDED, result__isnull=False)
    return list(rows.order_by("-pk")[:LATEST])
