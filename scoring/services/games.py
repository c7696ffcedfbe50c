"""Start games between systems, which a trained evaluator that compares texts decides."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run
from scoring.boards.choices import SUBSETS

from ..selectors.catalogue import get_entry, parse_options
from ..selectors.games import KIND, check_systems, find_judge, refuse_draws
from ..selectors.inputs import get_reference_set

#: Enough items for narrow intervals; the cost grows linearly.
ITEMS = 200
SEEDS = 100


@dataclass(frozen=True)
class GamesOptions:
    """Options of games."""

    evaluator: str = param("", help="Trained evaluator that compares texts; empty: the newest.")
    systems: str = param("all", help="Systems that play.", choices=SUBSETS)
    references: str = param(ORIGINAL, help="Reference set, for an evaluator that reads references.")
    options: dict[str, Any] = param({}, help="Options of the evaluator, among them `outcome` and `tie_rule`.")
    items: int = param(ITEMS, help="Maximum number of items, the same for all systems.", low=1, high=5000)
    seeds: int = param(SEEDS, help="Number of simulations.", low=1, high=1000)
    seed: int = seed_param()


def start_games(*, project: Project, user: Any = None, options: GamesOptions, send: bool = True) -> Run:
    """Queue the games, or return the active run of the same request."""
    check_values(options)
    judge = find_judge(project, options.evaluator)
    entry = get_entry(judge.name)
    references = ""
    if "references" in entry.needs:
        references = options.references or ORIGINAL
        get_reference_set(project, references)
    parsed = parse_options(entry, options.options)
    refuse_draws(judge, parsed)
    check_systems(project, options.systems)
    params = {**asdict(options), "evaluator": judge.slug, "references": references, "options": parsed}
    title = _("Games by %(name)s") % {"name": judge.slug}
    return enqueue_run(kind=KIND, project=project, user=user, params=params, title=title, send=send)
