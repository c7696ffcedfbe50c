"""Compute the leaderboard of systems by scores, ratings or comparisons."""

from dataclasses import replace

from scoring.boards.base import AspectInfo, Data, Progress, Settings, Table, Way
from scoring.boards.systems.assisted import systems_by_assisted_comparisons, systems_by_assisted_ratings
from scoring.boards.systems.query import SystemsQuery
from scoring.boards.systems.rankings import systems_by_comparisons, systems_by_evaluator, systems_by_ratings


def compute(data: Data, query: SystemsQuery, progress: Progress | None = None) -> Table:
    """Return the table of systems, best first."""
    settings = {**query.params, **data.draws}
    if query.by:
        described, scores, own = data.load_system_scores(query)
        return systems_by_evaluator(scores, settings, evaluator=described, own=own)
    way: Way = "ratings" if query.method == "mean" else "comparisons"
    aspect = data.choose_aspect(query.aspect, way, campaign=query.campaign)
    if query.assist:
        return _compute_assisted(data, query, aspect, settings)
    if query.method == "mean":
        ratings = data.load_ratings(aspect, query)
        return systems_by_ratings(ratings, settings, aspect=aspect.name, low=aspect.low, high=aspect.high)
    comparisons = data.load_comparisons(aspect, query, turing=query.method == "m1")
    return systems_by_comparisons(comparisons, settings, aspect=aspect.name)


def _compute_assisted(data: Data, query: SystemsQuery, aspect: AspectInfo, settings: Settings) -> Table:
    described, scores, _ = data.load_system_scores(replace(query, aspect=aspect.name))
    if query.method == "mean":
        ends = aspect.low, aspect.high
        ratings = data.load_ratings(aspect, query)
        return systems_by_assisted_ratings(
            ratings, scores, settings, aspect=aspect.name, ends=ends, evaluator=described
        )
    comparisons = data.load_comparisons(aspect, query, turing=False)
    return systems_by_assisted_comparisons(comparisons, scores, settings, aspect=aspect.name, evaluator=described)
