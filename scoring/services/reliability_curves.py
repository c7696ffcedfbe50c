"""Asking for curves of reliability. They are computed in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run

from ..selectors.inputs import get_reference_set
from ..selectors.reliability_curves import KIND
from ..selectors.training import find_trained
from .annotating import MOST_REFERENCES
from .wishes import faults_of_seed, read_wishes

MOST_ITEMS = 5000


@dataclass(frozen=True)
class CurveWishes:
    """`evaluator` is a trained ream; `other` one for another metric, for the transfer; `max` references are added."""

    evaluator: str
    other: str = ""
    references: str = ORIGINAL
    sample: int = 300
    max: int = 10
    seed: int = 13


def request_curves(*, project: Project, user: Any, params: Mapping[str, Any]) -> Run:
    """`POST projects/{slug}/runs/` with kind reliability."""
    wishes = read_wishes(CurveWishes, params, need={"evaluator": "Name the trained evaluator that is looked at."})
    return start_curves(project=project, user=user, wishes=wishes)


def start_curves(*, project: Project, user: Any = None, wishes: CurveWishes, send: bool = True) -> Run:
    """Queue the curves. The same request joins the run that is already there."""
    faults = []
    for field in ("evaluator", "other"):
        slug = getattr(wishes, field)
        if slug and (found := find_trained(project, slug)).name != "ream":
            faults.append(Fault(f"{slug} was trained as {found.name}; only ream predicts reliability.", field=field))
    if wishes.other == wishes.evaluator:
        faults.append(Fault("Name another evaluator for the transfer.", field="other"))
    if not 1 <= wishes.sample <= MOST_ITEMS:
        faults.append(Fault(f"sample is a number from 1 to {MOST_ITEMS}.", field="sample"))
    faults += faults_of_seed(wishes.seed)
    if not 2 <= wishes.max <= MOST_REFERENCES:
        faults.append(Fault(f"max is a number from 2 to {MOST_REFERENCES}.", field="max"))
    get_reference_set(project, wishes.references)
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    title = f"Reliability curves of {wishes.evaluator}" + (f" and {wishes.other}" if wishes.other else "")
    return enqueue_run(
        kind=KIND, project=project, user=user, params=asdict(wishes), title=title, send=send, queue="gpu"
    )
