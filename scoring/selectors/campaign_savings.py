"""What evaluators save in a campaign, for its quality page."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db.models import Max
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from annotation.models import Campaign, Judgement, Output, Rating
from evalapp.common.errors import BadInput

from ..models import Score, ScoreSet
from .assistant import EVERY, KINDS, count_judgements, find_fit
from .judge_split import get_split

#: Evaluators that are tried, those with the newest scores first.
MOST_SETS = 20
#: Share of saved judgements below which an evaluator is said not to help: chance alone gives a few percent.
LEAST_SAVED = 0.05
#: More judgements than this many times those so far are no plan.
MOST_TIMES = 100
_CACHED = 24 * 3600


@dataclass(frozen=True)
class RatedOutputs:
    """Outputs of a campaign's systems as (n,) columns; `human` is the mean rating in the campaign, nan without one;
    `is_test`: of the test part of judges."""

    output: Any
    system: list[str]
    cluster: list[str]
    human: Any
    chance: Any
    is_test: Any


def describe_savings(*, campaign: Campaign) -> list[str]:
    """Return for each aspect of a campaign a sentence on the evaluator that saves most judgements: its share, and for
    ratings how many more judgements separate two neighbouring systems with it and without; last, the state of the
    default assistant. Renewed every `EVERY` judgements and with new scores. Empty without scores."""
    sets = ScoreSet.objects.filter(project=campaign.project, scored_at__isnull=False, n_in_training=0)
    if campaign.kind not in KINDS or not sets.exists():
        return []
    newest = sets.aggregate(at=Max("scored_at"))["at"]
    # As often as the assistant is fitted: with every judgement they change little, and cost seconds in large projects.
    step = count_judgements(pk=campaign.pk) // EVERY
    state = repr((campaign.pk, campaign.removed_count, step, newest, sets.count(), get_language()))
    key = f"scoring:savings:{hashlib.sha256(state.encode()).hexdigest()[:32]}"
    result: list[str] | None = cache.get(key)
    if result is None:
        rows = campaign.aspects.select_related("aspect").order_by("position")
        describe = describe_aspect if campaign.kind == Campaign.Kind.LIKERT else describe_compared
        newest_sets = _list_sets(sets)
        result = [text for row in rows if (text := describe(campaign, row.aspect, newest_sets))]
        cache.set(key, result, _CACHED)
    fit = find_fit(campaign.project)
    return [*result, fit.describe()] if fit is not None else result


def _list_sets(sets: Any) -> list[ScoreSet]:
    """Return the newest score set of each of the last evaluators, one for each aspect."""
    newest: dict[tuple[int, str], ScoreSet] = {}
    for one in sets.select_related("evaluator").order_by("-scored_at"):
        if len(newest) < MOST_SETS:
            newest.setdefault((one.evaluator_id, one.aspect), one)
    return list(newest.values())


def describe_aspect(campaign: Campaign, aspect: Any, sets: list[ScoreSet]) -> str:
    """Return the sentence on an aspect; empty if none of the `sets` has scored a rated output."""
    import numpy as np

    from evalapp.stats.assisted.means import AssistedOptions, estimate_means, find_saved

    rated = _load_outputs(campaign, aspect)
    best: tuple[float, str, Any, Any, Counter[str]] | None = None
    for one in sets:
        if one.aspect not in ("", aspect.name):
            continue
        values = dict(Score.objects.filter(score_set=one, value__isnull=False).values_list("output", "value"))
        rows = np.array([pk in values for pk in rated.output.tolist()], dtype=np.bool_)
        # Of a judge only the development part counts: the sentence must not tell how good it is on the test part.
        is_hidden = rated.is_test[rows] & one.evaluator.is_judge
        rating = np.where(is_hidden, np.nan, rated.human[rows])
        if not np.isfinite(rating).any():
            continue
        score = np.array([values[pk] for pk in rated.output[rows].tolist()])
        cluster = [name for name, is_scored in zip(rated.cluster, rows, strict=True) if is_scored]
        system = [name for name, is_scored in zip(rated.system, rows, strict=True) if is_scored]
        chance = None if rated.chance is None else rated.chance[rows]
        columns = (rating, score, cluster, system)
        means = estimate_means(*columns, chance=chance)
        saved = find_saved(means)
        if saved is not None and (best is None or saved > best[0]):
            alone = estimate_means(*columns, chance=chance, options=AssistedOptions(weight=0.0))
            best = saved, one.evaluator.slug, means, alone, _count_rated(system, rated.human[rows])
    if best is None:
        return ""
    saved, name, means, alone, n_rated = best
    text = _describe_share(aspect, name, saved)
    needed = _find_next_pair(means, alone, n_rated) if saved >= LEAST_SAVED else None
    if needed is None:
        return text
    a, b, assisted, human = needed
    more = _(
        "To separate %(a)s and %(b)s you need about %(assisted)s more judgements with it, without about %(human)s."
    )
    return f"{text} {more % {'a': a, 'b': b, 'assisted': f'{assisted:,}', 'human': f'{human:,}'}}"


def describe_compared(campaign: Campaign, aspect: Any, sets: list[ScoreSet]) -> str:
    """Return the sentence on an aspect of compared outputs; empty without scores."""
    from scoring.boards.data.project import ProjectData
    from scoring.boards.systems.compute import compute
    from scoring.boards.systems.query import SystemsQuery

    shares: list[tuple[float, str]] = []
    for one in sets:
        # The sentence must not tell how good a judge is on its test part.
        if one.aspect not in ("", aspect.name) or one.evaluator.is_judge:
            continue
        name = one.evaluator.slug
        query = SystemsQuery(method="win-rate", aspect=aspect.name, campaign=campaign.slug, assist=name)
        try:
            saved = compute(ProjectData(campaign.project), query)["extras"]["saved"]
        except BadInput:  # scores of whole systems only, for example
            continue
        if saved is not None:
            shares.append((saved, name))
    if not shares:
        return ""
    saved, name = max(shares)
    return _describe_share(aspect, name, saved)


def _describe_share(aspect: Any, evaluator: str, saved: float) -> str:
    facts = {"aspect": aspect.name, "evaluator": evaluator, "saved": f"{100 * max(saved, 0.0):.0f}"}
    if saved < LEAST_SAVED:
        return _("%(aspect)s: no evaluator saves judgements here; the best is %(evaluator)s (%(saved)s %%).") % facts
    return _("%(aspect)s: %(evaluator)s saves about %(saved)s %% of the judgements.") % facts


def _count_rated(system: list[str], human: Any) -> Counter[str]:
    return Counter(name for name, rating in zip(system, human.tolist(), strict=True) if not math.isnan(rating))


def _load_outputs(campaign: Campaign, aspect: Any) -> RatedOutputs:
    import numpy as np

    current = Judgement.objects.filter(campaign=campaign, current=True)
    ratings = Rating.objects.filter(aspect=aspect, judgement__in=current.values("pk"), output__isnull=False)
    values: dict[int, list[float]] = {}
    chances: dict[int, float] = {}
    for output, value, meta in ratings.values_list("output", "value", "meta"):
        if meta.get("propensity", 1) > 0:
            values.setdefault(output, []).append(value)
            chances[output] = meta.get("propensity", np.nan)
    systems = Output.objects.filter(pk__in=campaign.units.values("output_a")).values("system")
    fields = ("pk", "system__name", "step", "item__group", "item__key")
    rows = list(Output.objects.filter(project=campaign.project, system__in=systems).order_by("pk").values_list(*fields))
    split = get_split(campaign.project)
    is_chosen = any(np.isfinite(chance) for chance in chances.values())
    return RatedOutputs(
        output=np.array([row[0] for row in rows], dtype=np.int64),
        system=[row[1] if row[2] is None else f"{row[1]} @ {row[2]}" for row in rows],
        cluster=[row[3] or f"item:{row[4]}" for row in rows],
        human=np.array([np.mean(values[row[0]]) if row[0] in values else np.nan for row in rows]),
        chance=np.array([chances.get(row[0], np.nan) for row in rows]) if is_chosen else None,
        is_test=np.array([split.is_test(*row[3:]) for row in rows], dtype=np.bool_),
    )


def _find_next_pair(means: Any, alone: Any, n_rated: Mapping[str, int]) -> tuple[str, str, int, int] | None:
    """Return two neighbours by the assisted means that are not separated yet, and about how many more judgements would
    separate them with the evaluator and without: those of the pair that needs fewest. None if there is no such pair.

    Variances are taken as proportional to 1 / n, and the difference as it is now. `n_rated`: rated outputs by system;
    the estimates may use a part of these.
    """
    import numpy as np
    from scipy.stats import norm

    limit = float(norm.ppf(0.975)) ** 2
    order = np.argsort(-np.where(means.n_groups > 1, means.value, -np.inf), kind="stable")
    order = order[means.n_groups[order] > 1]
    found = []
    for first, second in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
        contrast = np.zeros(len(means.value))
        contrast[[first, second]] = 1.0, -1.0
        names = str(means.labels[first]), str(means.labels[second])
        n, n_so_far = int(means.n_judged[first] + means.n_judged[second]), sum(n_rated[name] for name in names)
        squared = float((means.value[first] - means.value[second]) ** 2)
        if squared <= 0:
            continue
        needed = [n * limit * float(contrast @ one.covariance @ contrast) / squared for one in (means, alone)]
        if n_so_far < needed[0] <= MOST_TIMES * n_so_far and needed[1] > needed[0]:
            assisted, human = (int(np.ceil(one - n_so_far)) for one in needed)
            found.append((*names, assisted, human))
    return min(found, key=lambda pair: pair[2:], default=None)
