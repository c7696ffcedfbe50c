"""Gold reliability of written reference sets by round: how well a metric with the references of a round correlates with
the ratings of the item's outputs (equations 1 and 2 of REAM). The metric is the one whose reliability the campaign's
evaluator predicts. Items with too few rated outputs are left out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from annotation.models import Aspect, Output, Rating, WritingCampaign
from annotation.selectors.writing_watch import GrownSet, Point, compute_points, list_grown_sets
from evalapp.accounts.selectors import get_project

from ..models import Evaluator

if TYPE_CHECKING:
    from scoring.ml.base import PairEvaluator

#: Default metric. It is fast enough for a page: all pairs of outputs and references of an item in milliseconds.
METRIC = "bleu-star"
LEAST_OUTPUTS = 3
MOST_ITEMS = 500


@dataclass
class GoldGrowth:
    """Gold reliability by round; `why` is the reason for the choice of `metric`.

    `n_items` items have a defined reliability, `n_left_out` have not; `n_simulated` ratings are simulated; `capped`
    means that there are more items than were used.
    """

    metric: str
    why: str = ""
    signature: str = ""
    aspect: str = ""
    aspects: tuple[str, ...] = ()
    by_arm: dict[str, list[Point]] = field(default_factory=dict)
    by_person: dict[str, list[Point]] = field(default_factory=dict)
    n_items: int = 0
    n_left_out: int = 0
    n_simulated: int = 0
    capped: bool = False


def gold_growth(*, user: Any, campaign: WritingCampaign, aspect: str = "") -> GoldGrowth:
    """Return the reliability by arm and by annotator, for the ratings of an aspect (default: the first rated one)."""
    get_project(user=user, slug=campaign.project.slug, need="read")
    sets = list_grown_sets(campaign=campaign)
    items = sorted({row.item for row in sets})
    rated = Rating.objects.filter(output__item__in=items[:MOST_ITEMS])
    aspects = tuple(
        Aspect.objects.filter(pk__in=rated.values("aspect")).order_by("position", "pk").values_list("name", flat=True)
    )
    chosen = aspect if aspect in aspects else next(iter(aspects), "")
    name, why = choose_metric(campaign)
    result = GoldGrowth(name, why, aspect=chosen, aspects=aspects, capped=len(items) > MOST_ITEMS)
    if not chosen:
        result.n_left_out = len(items)
        return result
    ratings = rated.filter(aspect__name=chosen)
    human, result.n_simulated = _means(ratings), ratings.filter(simulated=True).count()
    texts = dict(Output.objects.filter(pk__in=[pk for rows in human.values() for pk in rows]).values_list("pk", "text"))
    groups: dict[str, dict[str, list]] = {"arm": defaultdict(list), "person": defaultdict(list)}
    for row in _with_growth(sets, human, texts, result):
        grown, growth = row
        groups["arm"][grown.arm].append((grown.item, growth))
        if grown.person:
            groups["person"][grown.person].append((grown.item, growth))
    result.by_arm = {name: compute_points(rows) for name, rows in sorted(groups["arm"].items())}
    result.by_person = {name: compute_points(rows) for name, rows in sorted(groups["person"].items())}
    result.n_items = len({item for rows in groups["arm"].values() for item, _ in rows})
    result.n_left_out = min(len(items), MOST_ITEMS) - result.n_items
    return result


def choose_metric(campaign: WritingCampaign) -> tuple[str, str]:
    """Return the metric that the campaign's evaluator was trained for, and the reason for the choice; bleu-star without
    such an evaluator, or if its metric needs an encoder and is too slow for a page."""
    from scoring.ml.errors import UnknownEvaluator
    from scoring.ml.registry import get_entry

    slug = campaign.evaluator
    if not slug:
        return METRIC, _("because the campaign has no evaluator")
    rows = Evaluator.objects.filter(project=campaign.project_id, kind=Evaluator.Kind.TRAINED, slug=slug)
    options = rows.values_list("options", flat=True).first() or {}
    name = str(options.get("metric") or "")
    try:
        entry = get_entry(name) if name else None
    except UnknownEvaluator:
        entry = None
    if entry is None:
        return METRIC, _("because %(evaluator)s has no known metric") % {"evaluator": slug}
    if "encoder" in entry.needs or "references" not in entry.needs:
        return METRIC, _("because the metric of %(evaluator)s, %(metric)s, is too slow") % {
            "evaluator": slug,
            "metric": name,
        }
    return name, _("the metric of %(evaluator)s") % {"evaluator": slug}


def _means(ratings: Any) -> dict[int, dict[int, float]]:
    """Return item -> output -> mean rating, for items with enough rated outputs."""
    means: dict[int, dict[int, float]] = defaultdict(dict)
    from evalapp.stats.agreement.judged import resolve_raters

    rows = list(ratings.values_list("output__item", "output", "rater", "value").order_by("pk"))
    people, places = resolve_raters({rater for _, _, rater, _ in rows})
    # Only the first rating of an output by a person counts, as in every table.
    first: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for item, output, rater, value in sorted(rows, key=lambda row: places[row[2]]):
        first[item, output].setdefault(people[rater], value)
    for (item, output), values in first.items():
        means[item][output] = sum(values.values()) / len(values)
    return {item: rows for item, rows in means.items() if len(rows) >= LEAST_OUTPUTS}


def _with_growth(
    sets: list[GrownSet], human: dict[int, dict[int, float]], texts: dict[int, str], result: GoldGrowth
) -> list[tuple[GrownSet, list[tuple[int, float]]]]:
    """Return each set with its (round, reliability) from the first defined round, with one call of the metric."""
    import numpy as np

    from scoring.ml.base import Query
    from scoring.ml.evaluators.ream.gold import ItemGold

    metric = _load(result)
    result.signature = str(metric.signature)
    used = [row for row in sets if row.item in human and (row.start or row.added)]
    queries = [
        Query(tuple(texts[pk] for pk in human[row.item]), (*row.start, *(text for _, text in row.added)))
        for row in used
    ]
    grown = []
    for row, matrix in zip(used, metric.all_pairs(queries), strict=True):
        first = len(row.start)
        gold = ItemGold(matrix, np.array(list(human[row.item].values())), first + len(row.added))
        rounds = [(0, first), *((moment, first + place) for place, (moment, _) in enumerate(row.added, 1))]
        rounds = [(moment, size) for moment, size in rounds if size]
        values = gold.reliabilities([tuple(range(size)) for _, size in rounds])
        growth = [
            (moment, float(value)) for (moment, _), value in zip(rounds, values, strict=True) if np.isfinite(value)
        ]
        if growth:
            grown.append((row, growth))
    return grown


def _load(result: GoldGrowth) -> PairEvaluator:
    """Load the metric, or bleu-star (with the reason) if it cannot be loaded or does not compare pairs."""
    from scoring.ml import load
    from scoring.ml.base import PairEvaluator
    from scoring.ml.errors import ScoringError

    try:
        metric = load(result.metric)
    except ScoringError as error:
        result.why = _("because %(metric)s could not be loaded (%(error)s)") % {
            "metric": result.metric,
            "error": error,
        }
    else:
        if isinstance(metric, PairEvaluator):
            return metric
        result.why = _("because %(metric)s does not compare a text with one reference") % {"metric": result.metric}
    result.metric = METRIC
    plain = load(METRIC)
    assert isinstance(plain, PairEvaluator)
    return plain
