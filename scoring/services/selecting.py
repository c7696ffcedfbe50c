"""Asking for a selection report: which checkpoint or variant each evaluator would pick. It is computed in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from annotation.models import System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run

from ..selectors.inputs import get_reference_set
from ..selectors.selecting import KIND, check_chooser, has_choices, judged_aspect, usual_choosers
from .wishes import check_seed, read_wishes

MOST_EVALUATORS, MOST_RUNS = 40, 100
#: The paper made ten runs of each kind.
RUNS = 10


@dataclass(frozen=True)
class SelectionWishes:
    """`evaluators` are names of the catalogue that need no training, or of what was trained or applied here; none: all
    that were applied. `variants` (name -> systems) in place of what systems say of themselves. The items are parted
    into `runs` parts by the `seed`, in each of which everybody chooses once."""

    aspect: str = ""
    evaluators: list[str] = field(default_factory=list)
    variants: dict[str, list[str]] = field(default_factory=dict)
    references: str = ORIGINAL
    runs: int = RUNS
    seed: int = 13


def request_selection(*, project: Project, user: Any, params: Mapping[str, Any]) -> Run:
    """`POST projects/{slug}/runs/` with kind selection."""
    return start_selection(project=project, user=user, wishes=read_wishes(SelectionWishes, params, need={}))


def start_selection(*, project: Project, user: Any = None, wishes: SelectionWishes, send: bool = True) -> Run:
    """Queue the report. The same request joins the run that is already there."""
    if not 1 <= wishes.runs <= MOST_RUNS:
        text = f"runs is a number from 1 to {MOST_RUNS}."
        raise BadInput(text, faults=[Fault(text, field="runs")])
    check_seed(wishes.seed)
    get_reference_set(project, wishes.references)
    aspect = judged_aspect(project, wishes.aspect)
    known = set(System.objects.filter(project=project).values_list("name", flat=True))
    absent = sorted({name for names in wishes.variants.values() for name in names} - known)
    if absent:
        text = f"{project.slug} has no system “{absent[0]}”."
        raise BadInput(text, faults=[Fault(text, field="variants")])
    if not wishes.variants and not has_choices(project):
        raise BadInput(
            f"{project.slug} has nothing to choose from: upload outputs of one system at several steps, or name the "
            "systems that are variants of one."
        )
    names = list(dict.fromkeys(wishes.evaluators)) or usual_choosers(project, wishes.references)
    if not names or len(names) > MOST_EVALUATORS:
        text = f"Name 1 to {MOST_EVALUATORS} evaluators." if names else "Apply an evaluator first, or name some."
        raise BadInput(text, faults=[Fault(text, field="evaluators")])
    for name in names:
        check_chooser(project, name)
    params = {**asdict(wishes), "aspect": aspect, "evaluators": sorted(names)}
    title = f"Choices by {aspect}"
    return enqueue_run(kind=KIND, project=project, user=user, params=params, title=title, send=send)
