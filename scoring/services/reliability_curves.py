"""Asking for curves of reliability. They are computed in a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from evalapp.common.params import param, seed_param, value_faults
from evalapp.common.queue import enqueue_run

from ..selectors.inputs import get_reference_set
from ..selectors.reliability_curves import KIND
from ..selectors.training import find_trained
from .annotating import MOST_REFERENCES

MOST_ITEMS = 5000


@dataclass(frozen=True)
class CurveWishes:
    """Whose predictions of reliability are drawn over how many references."""

    evaluator: str = param(help="A trained ream.", needed="Name the trained evaluator that is looked at.")
    other: str = param("", help="A ream trained for another metric, for the transfer.")
    references: str = param(ORIGINAL, help="The reference set that is drawn from.")
    sample: int = param(300, help="At most so many items.", low=1, high=MOST_ITEMS)
    max: int = param(10, help="At most so many references.", low=2, high=MOST_REFERENCES)
    seed: int = seed_param()


def start_curves(*, project: Project, user: Any = None, wishes: CurveWishes, send: bool = True) -> Run:
    """Queue the curves. The same request joins the run that is already there."""
    faults = []
    for field in ("evaluator", "other"):
        slug = getattr(wishes, field)
        if slug and (found := find_trained(project, slug)).name != "ream":
            faults.append(Fault(f"{slug} was trained as {found.name}; only ream predicts reliability.", field=field))
    if wishes.other == wishes.evaluator:
        faults.append(Fault("Name another evaluator for the transfer.", field="other"))
    faults += value_faults(wishes)
    get_reference_set(project, wishes.references)
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    title = f"Reliability curves of {wishes.evaluator}" + (f" and {wishes.other}" if wishes.other else "")
    return enqueue_run(
        kind=KIND, project=project, user=user, params=asdict(wishes), title=title, send=send, queue="gpu"
    )
