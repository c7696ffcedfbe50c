"""Asking an evaluator that compares texts to rank the systems by games. It is computed in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run

from ..selectors.catalogue import get_entry, parse_options
from ..selectors.games import KIND, check_systems, find_judge, refuse_draws
from ..selectors.inputs import get_reference_set
from ..selectors.leaderboards import SUBSETS
from .wishes import GREATEST_SEED, LEAST_SEED, read_wishes

#: Enough for intervals of ratings that tell systems apart; each more costs as many verdicts again.
ITEMS = 200
SEEDS = 100
#: What may be asked for, by its name: the least and the most.
LIMITS = {"items": (1, 5000), "seeds": (1, 1000), "seed": (LEAST_SEED, GREATEST_SEED)}


@dataclass(frozen=True)
class GamesWishes:
    """`evaluator` is a trained one that compares texts; without a name the newest. At most `items` items are drawn by
    the `seed`, the same for all systems; games are simulated `seeds` times. `options` are the evaluator's own, among
    them what a game counts (`outcome`) and, of verdicts, a draw (`tie_rule`)."""

    evaluator: str = ""
    systems: str = "all"
    references: str = ORIGINAL
    options: dict[str, Any] = field(default_factory=dict)
    items: int = ITEMS
    seeds: int = SEEDS
    seed: int = 13


def request_games(*, project: Project, user: Any, params: Mapping[str, Any]) -> Run:
    """`POST projects/{slug}/runs/` with kind games."""
    return start_games(project=project, user=user, wishes=read_wishes(GamesWishes, params, need={}))


def start_games(*, project: Project, user: Any = None, wishes: GamesWishes, send: bool = True) -> Run:
    """Queue the games. The same request joins the run that is already there."""
    faults = [
        Fault(f"{name} is a number from {low} to {high}.", field=name)
        for name, (low, high) in LIMITS.items() if not low <= getattr(wishes, name) <= high
    ]  # fmt: skip
    if wishes.systems not in SUBSETS:
        faults.append(Fault(f"systems is one of {', '.join(SUBSETS)}, not “{wishes.systems}”.", field="systems"))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    judge = find_judge(project, wishes.evaluator)
    entry = get_entry(judge.name)
    references = ""
    if "references" in entry.needs:
        references = wishes.references or ORIGINAL
        get_reference_set(project, references)
    options = parse_options(entry, wishes.options)
    refuse_draws(judge, options)
    check_systems(project, wishes.systems)
    params = {**asdict(wishes), "evaluator": judge.slug, "references": references, "options": options}
    title = f"Games by {judge.slug}"
    return enqueue_run(kind=KIND, project=project, user=user, params=params, title=title, send=send)
