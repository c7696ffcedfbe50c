"""Reliability curves computed by runs."""

from django.utils.translation import gettext_noop

from evalapp.accounts.models import Project
from evalapp.common.models import Run

from .runs import list_finished_runs

KIND = "reliability"
#: Panels, in the order of the page.
PANELS = {
    "size": gettext_noop("Reliability by number of references"),
    "growth": gettext_noop("Gold reliability as references are added"),
    "predicted": gettext_noop("Predicted reliability as references are added"),
    "transfer": gettext_noop("References selected for one metric, used with another"),
    "transfer-other": gettext_noop("The same with the metrics exchanged"),
}
LATEST = 10


def latest_curves(project: Project) -> list[Run]:
    """Return the last runs with curves, newest first."""
    return list(list_finished_runs(project, KIND)[:LATEST])
