"""The report of an evaluator as one more rater. For judges it has more: the effect of the order of two texts,
self-consistency, and other judges of the same aspect, such as those with another template."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.core.cache import cache
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from annotation.models import Aspect, Output, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.names import natural_key

from ..models import Evaluator, Score, ScoreSet
from .aspects import choose_aspect
from .judge_split import Split, count_looks, get_split
from .leaderboards import compute_stamp

#: Seconds that a report is cached; its key changes with the data.
_CACHED = 24 * 3600
#: Scales with more points have no confusion matrix.
_MOST_POINTS = 11
Part = Literal["all", "development", "test"]


@dataclass(frozen=True)
class ReportQuery:
    """What a report is about; `epsilon` is the cost of a person in the alternative annotator test."""

    score_set: ScoreSet
    aspect: Aspect
    part: Part
    epsilon: float = 0.1

    def covers(self, split: Split, group: str, item: str) -> bool:
        """Whether an item belongs to the part."""
        return self.part == "all" or split.is_test(group, item) == (self.part == "test")


def choose_report(project: Project, score_set: ScoreSet, aspect: str, part: Part, epsilon: str = "") -> ReportQuery:
    """Return the query of a report. Raises `BadInput` for an epsilon outside of 0 to 1."""
    try:
        price = float(epsilon or 0.1)
    except ValueError:
        price = -1.0
    if not 0 <= price < 1:
        raise BadInput.for_field("epsilon", _("epsilon must be a number from 0 to 1, such as 0.1."))
    chosen = choose_aspect(project, aspect or score_set.aspect, judged_by="ratings")
    return ReportQuery(score_set, chosen, part, price)


def find_report(project: Project, query: ReportQuery) -> dict[str, Any]:
    """Return the report as JSON-ready values, from the cache while the data are the same."""
    score_set = query.score_set
    state = [
        score_set.pk, score_set.data_hash, score_set.n_scores, query.aspect.pk, query.part, query.epsilon,
        compute_stamp(project),
    ]  # fmt: skip
    key = f"scoring:rater-report:{hashlib.sha256(repr(state).encode()).hexdigest()[:32]}"
    report = cache.get(key)
    if report is None:
        report = compute_report(project, query)
        cache.set(key, report, _CACHED)
    return {**report, **_describe_answers(score_set.evaluator)}


def compute_report(project: Project, query: ReportQuery) -> dict[str, Any]:
    """Compute the report of a score set against the ratings of an aspect."""
    from evalapp.stats.agreement.judge_report import RatedOutputs, report_as_rater

    score_set, aspect = query.score_set, query.aspect
    evaluator = score_set.evaluator
    scored = Score.objects.filter(score_set=score_set, value__isnull=False, in_training=False)
    values = dict(scored.values_list("output", "value"))
    ratings = Rating.objects.filter(project=project, aspect=aspect, output__isnull=False)
    n_chosen = ratings.filter(meta__has_key="propensity").count()
    ratings = ratings.exclude(meta__has_key="propensity")
    split = get_split(project)
    names = (
        "output",
        "rater",
        "value",
        "output__system__name",
        "output__item__group",
        "output__item__key",
        "size",
        "simulated",
    )
    rows = ratings.annotate(size=Length("output__text")).order_by("output", "rater").values_list(*names)
    columns: list[list[Any]] = [[] for _name in range(7)]
    n_simulated = 0
    for output, rater, value, system, group, item, size, simulated in rows.iterator(20_000):
        name = group or f"item:{item}"
        if not query.covers(split, group, item):
            continue
        n_simulated += simulated
        for column, one in zip(
            columns, (output, rater, value, system, name, size, values.get(output, float("nan"))), strict=True
        ):
            column.append(one)
    output_, rater_, rating, system_, group_, length, score = columns
    report = report_as_rater(
        RatedOutputs(output_, rater_, rating, system_, group_, length), score, points=_list_points(aspect),
        same_scale=has_scale(evaluator), epsilon=query.epsilon,
    )  # fmt: skip
    undefined = score_set.n_undefined / score_set.n_scores if score_set.n_scores else None
    return {
        "evaluator": evaluator.slug, "aspect": aspect.name, "part": query.part, "signature": score_set.full_signature,
        "undefined": undefined, "n_simulated": n_simulated, "n_chosen": n_chosen, **report.as_dict(),
        "decided": _compare_with_verdicts(project, query, values),
        "others": _compare_judges(project, score_set, values) if evaluator.is_judge else [],
    }  # fmt: skip


def _compare_with_verdicts(project: Project, query: ReportQuery, values: Mapping[int, float]) -> dict[str, Any] | None:
    """Return the share of decided pairs that a comparing judge orders as people did; None for other evaluators."""
    from scoring.boards.data.project_judgements import load_comparisons
    from scoring.boards.pairs.compute import agree_with_scores

    evaluator = query.score_set.evaluator
    if not evaluator.is_judge or evaluator.options["kind"] != "pairwise":
        return None
    split = get_split(project)
    rows = Output.objects.filter(project=project).values_list("pk", "item__group", "item__key")
    inside = {pk: values[pk] for pk, *place in rows.iterator(20_000) if pk in values and query.covers(split, *place)}
    return agree_with_scores(load_comparisons(project, query.aspect, turing=False), inside).as_dict()


def has_scale(evaluator: Evaluator) -> bool:
    """Whether scores are on the scale of people: those of judges that give neither shares of wins nor rewards."""
    options = evaluator.options
    return evaluator.is_judge and options["kind"] == "pointwise" and options["method"] != "reward"


def _list_points(aspect: Aspect) -> tuple[float, ...]:
    if aspect.low is None or aspect.high is None:
        return ()
    n = int(aspect.high - aspect.low) + 1
    return tuple(aspect.low + k for k in range(n)) if 2 <= n <= _MOST_POINTS else ()


def _compare_judges(project: Project, score_set: ScoreSet, values: Mapping[int, float]) -> list[dict[str, Any]]:
    """Return the other judges of the aspect: how strongly their scores of the same outputs correlate and differ."""
    import numpy as np

    result = []
    sets = ScoreSet.objects.filter(
        project=project, evaluator__kind=Evaluator.Kind.JUDGE, aspect=score_set.aspect, scored_at__isnull=False
    )
    for other in sets.exclude(pk=score_set.pk).select_related("evaluator").order_by("pk"):
        if (other.evaluator.options["kind"], has_scale(other.evaluator)) != (
            score_set.evaluator.options["kind"], has_scale(score_set.evaluator)
        ):  # fmt: skip
            continue
        theirs = dict(Score.objects.filter(score_set=other, value__isnull=False).values_list("output", "value"))
        shared = sorted(set(values) & set(theirs))
        a, b = (np.array([column[output] for output in shared]) for column in (values, theirs))
        is_defined = len(shared) > 2 and np.ptp(a) > 0 and np.ptp(b) > 0
        result.append({
            "evaluator": other.evaluator.slug, "template": other.evaluator.options["template"],
            "model": other.evaluator.options["model"], "n": len(shared),
            "pearson": float(np.corrcoef(a, b)[0, 1]) if is_defined else None,
            "mean_difference": float(np.mean(a - b)) if len(shared) else None,
            "mean_absolute": float(np.mean(np.abs(a - b))) if len(shared) else None,
        })  # fmt: skip
    return sorted(result, key=lambda row: natural_key(row["evaluator"]))


def _describe_answers(evaluator: Evaluator) -> dict[str, Any]:
    """Return how often the test part of a judge was shown, and what its last run found in the answers; see
    `judged_units.AnswerFigures`."""
    if not evaluator.is_judge:
        return {}
    names = ("consistency", "mean_share", "orders", "injections", "controls")
    return {
        "model": evaluator.record.get("model", ""), "template": evaluator.options["template"],
        **{name: evaluator.record.get(name) for name in names},
        "looks": count_looks(evaluator.project, [evaluator.slug]),
    }  # fmt: skip
