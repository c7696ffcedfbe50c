"""Asking for the robustness report of an evaluator: its scores by kind of text. It is computed in a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run

from ..selectors.catalogue import check_models, get_entry, parse_options
from ..selectors.robustness import KIND
from ..selectors.training import find_trained, list_trained, refuse_away
from ..selectors.written_kinds import SAMPLE, find_sources

MOST_ITEMS = 5000
NOTHING = (
    "{slug} has no texts written under a constraint, and no items with wrong answers of their own. Start a writing "
    "campaign of that kind first."
)


@dataclass(frozen=True)
class RobustnessWishes:
    """Which evaluator scores the kinds of texts."""

    evaluator: str = param(
        help="An evaluator that needs no training, or the name of a trained one.",
        needed="Name the evaluator that is looked at.",
    )
    options: dict[str, Any] = param({}, help="Options of the evaluator.")
    sample: int = param(
        SAMPLE, help="At most so many items that bring wrong answers of their own.", low=1, high=MOST_ITEMS
    )
    seed: int = seed_param()


def start_robustness(
    *, project: Project, user: Any = None, wishes: RobustnessWishes, send: bool = True, any_encoder: bool = False
) -> Run:
    """Queue the report. The same request joins the run that is already there. `any_encoder` is for the command line."""
    check_values(wishes)
    if list_trained(project).filter(slug=wishes.evaluator).exists():
        trained = find_trained(project, wishes.evaluator)
        refuse_away(trained)
        get_entry(trained.name)
    else:
        entry = get_entry(wishes.evaluator)
        if entry.learns:
            message = f"{entry.name} must be trained first; name what was trained."
            raise BadInput(message, faults=[Fault(message, field="evaluator")])
        parsed = parse_options(entry, wishes.options)
        if not any_encoder:
            check_models(entry.options, parsed)
    if find_sources(project).is_empty:
        raise BadInput(NOTHING.format(slug=project.slug))
    title = f"Robustness of {wishes.evaluator}"
    return enqueue_run(
        kind=KIND, project=project, user=user, params=asdict(wishes), title=title, send=send, queue="gpu"
    )
