"""Asking an evaluator that compares texts to rank the systems by games. It is computed in a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run
from scoring.boards.choices import SUBSETS

from ..selectors.catalogue import get_entry, parse_options
from ..selectors.games import KIND, check_systems, find_judge, refuse_draws
from ..selectors.inputs import get_reference_set

#: Enough for intervals of ratings that tell systems apart; each more costs as many verdicts again.
ITEMS = 200
SEEDS = 100


@dataclass(frozen=True)
class GamesWishes:
    """What games are simulated from, and how many."""

    evaluator: str = param("", help="A trained evaluator that compares texts; empty: the newest.")
    systems: str = param("all", help="The systems that play.", choices=SUBSETS)
    references: str = param(ORIGINAL, help="The reference set, for an evaluator that reads references.")
    options: dict[str, Any] = param({}, help="Options of the evaluator, among them `outcome` and `tie_rule`.")
    items: int = param(ITEMS, help="At most so many items, the same for all systems.", low=1, high=5000)
    seeds: int = param(SEEDS, help="Number of simulations.", low=1, high=1000)
    seed: int = seed_param()


def start_games(*, project: Project, user: Any = None, wishes: GamesWishes, send: bool = True) -> Run:
    """Queue the games. The same request joins the run that is already there."""
    check_values(wishes)
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
