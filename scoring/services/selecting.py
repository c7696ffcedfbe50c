"""Asking for a selection report: which checkpoint or variant each evaluator would pick. It is computed in a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from annotation.models import System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run

from ..selectors.inputs import get_reference_set
from ..selectors.selecting import KIND, check_chooser, has_choices, judged_aspect, usual_choosers

MOST_EVALUATORS, MOST_RUNS = 40, 100
#: The paper made ten runs of each kind.
RUNS = 10


@dataclass(frozen=True)
class SelectionWishes:
    """Which evaluators choose among which checkpoints and variants."""

    aspect: str = param("", help="What people judged; needed where they judged several aspects.")
    evaluators: list[str] = param(
        [], help="Evaluators that need no training, or were trained or applied here; empty: all that were applied."
    )
    variants: dict[str, list[str]] = param(
        {}, help="Name -> systems that are its variants, instead of `variant_of` in the meta of systems."
    )
    references: str = param(ORIGINAL, help="The reference set of the scores.")
    runs: int = param(
        RUNS, help="The items are split into so many parts; each evaluator chooses once in each.", low=1, high=MOST_RUNS
    )
    seed: int = seed_param()


def start_selection(*, project: Project, user: Any = None, wishes: SelectionWishes, send: bool = True) -> Run:
    """Queue the report. The same request joins the run that is already there."""
    check_values(wishes)
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
