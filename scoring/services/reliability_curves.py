"""Start the computation of reliability curves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from evalapp.common.params import param, seed_param, value_faults
from evalapp.common.queue import enqueue_run

from ..selectors.inputs import get_reference_set
from ..selectors.reliability_curves import KIND
from .reference_selection import MOST_REFERENCES, find_unsuited

MOST_ITEMS = 5000


@dataclass(frozen=True)
class CurveOptions:
    """Options of reliability curves: predicted and measured reliability by number of references."""

    evaluator: str = param(help="Trained ream.", needed=gettext_noop("Name the trained evaluator."))
    other: str = param("", help="Trained ream for another metric, to measure the transfer.")
    references: str = param(ORIGINAL, help="Reference set to draw from.")
    sample: int = param(300, help="Maximum number of items.", low=1, high=MOST_ITEMS)
    max: int = param(10, help="Maximum number of references.", low=2, high=MOST_REFERENCES)
    seed: int = seed_param()


def start_curves(*, project: Project, user: Any = None, options: CurveOptions, send: bool = True) -> Run:
    """Queue the curves, or return the active run of the same request."""
    faults = find_unsuited(project, evaluator=options.evaluator, other=options.other)
    if options.other == options.evaluator:
        faults.append(Fault(_("Choose a second evaluator that differs from the first."), field="other"))
    faults += value_faults(options)
    get_reference_set(project, options.references)
    if faults:
        raise BadInput.from_faults(faults)
    names = " + ".join(filter(None, (options.evaluator, options.other)))
    title = _("Reliability curves of %(evaluators)s") % {"evaluators": names}
    return enqueue_run(kind=KIND, project=project, user=user, params=asdict(options), title=title, send=send)
