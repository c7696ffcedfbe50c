"""The leaderboard of systems: reads what people or an evaluator said, as columns, and hands them to
`scoring.boards.systems.compute`, which computes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.models import Campaign
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere

from ..models import Evaluator, ScoreSet
from .aspects import choose_aspect, find_campaign
from .columns import load_columns, load_outputs
from .leaderboards import SystemsQuery
from .people import load_comparisons, load_ratings
from .score_sets import get_current_set

if TYPE_CHECKING:
    from scoring.boards.data.columns import Scores


def rank_systems(project: Project, query: SystemsQuery) -> dict[str, Any]:
    """The table as plain values: settings, counts and one row per system, best first."""
    if query.by:
        return _by_evaluator(project, query)
    if query.method == "mean":
        return _by_ratings(project, query)
    return _by_comparisons(project, query)


def _by_ratings(project: Project, query: SystemsQuery) -> dict[str, Any]:
    from scoring.boards.systems.compute import systems_by_ratings

    campaign = find_campaign(project, query.campaign)
    aspect = choose_aspect(project, query.aspect or _asked_in(campaign), judged_by="ratings")
    ratings = load_ratings(project, aspect, filter=query.filter, campaign=campaign)
    return systems_by_ratings(ratings, asdict(query), aspect=aspect.name, low=aspect.low, high=aspect.high)


def _by_comparisons(project: Project, query: SystemsQuery) -> dict[str, Any]:
    from scoring.boards.systems.compute import systems_by_comparisons

    campaign = find_campaign(project, query.campaign)
    aspect = choose_aspect(project, query.aspect or _asked_in(campaign), judged_by="comparisons")
    found = load_comparisons(
        project, aspect, turing=query.method == "m1", filter=query.filter, propensity=query.weights == "propensity",
        campaign=campaign,
    )  # fmt: skip
    return systems_by_comparisons(found, asdict(query), aspect=aspect.name)


def _asked_in(campaign: Campaign | None) -> str:
    """The first aspect that a campaign asks for; empty without one."""
    names = campaign.aspects.order_by("position").values_list("aspect__name", flat=True) if campaign else ()
    return next(iter(names), "")


def get_evaluator(project: Project, slug: str) -> Evaluator:
    found = Evaluator.objects.filter(project=project, slug=slug).first()
    if found is None:
        raise NotThere(
            f"No evaluator “{slug}” has been applied in {project.slug}. "
            f"Apply it first: manage.py score {slug} --project {project.slug}"
        )
    return found


def _by_evaluator(project: Project, query: SystemsQuery) -> dict[str, Any]:
    from scoring.boards.systems.compute import systems_by_evaluator

    evaluator = get_evaluator(project, query.by)
    score_set = get_current_set(project, evaluator, query.references, query.aspect)
    if score_set is None:
        raise BadInput(
            f"{query.by} has no complete scores against “{query.references}” yet. See its run, or score again."
        )
    if query.aspect and score_set.aspect not in ("", query.aspect):
        raise BadInput(
            f"{query.by} has no scores of “{query.aspect}” against “{query.references}”: it learned others, such as "
            f"“{score_set.aspect}”."
        )
    described = {
        "slug": evaluator.slug,
        "signature": score_set.full_signature,
        "aspect": score_set.aspect,
        "n_in_training": score_set.n_in_training,
        "scored_at": score_set.scored_at.isoformat() if score_set.scored_at else None,
    }
    scores = load_score_columns(project, score_set)
    return systems_by_evaluator(scores, asdict(query), evaluator=described, own=score_set.systems)


def load_score_columns(project: Project, score_set: ScoreSet) -> Scores:
    """All scores of a set as columns, by item and system."""
    from scoring.boards.data.columns import Scores

    found, outputs = load_columns(score_set), load_outputs(project)
    scored = np.isin(outputs.output, found.output)
    value = found.of(outputs.output[scored])
    item, cluster, system = outputs.item[scored], outputs.cluster[scored], outputs.system[scored]
    order = np.lexsort((system, item))
    return Scores(item[order], cluster[order], system[order], value[order], outputs.units)
