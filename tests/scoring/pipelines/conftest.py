"""A scored project with everything that an export can contain."""

from __future__ import annotations

from itertools import pairwise

import pytest

from annotation.models import Comparison, Dialogue, Item, Output, RaterFilter, Rating, System
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.aspects.query import AspectsQuery
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.references.query import EnhancedQuery
from scoring.boards.slices.query import SlicesQuery
from scoring.boards.systems.query import SystemsQuery
from scoring.services.leaderboards import get_leaderboard
from tests.remembered import make_once
from tests.taking import list_errors, take_in

QUERIES = (
    SystemsQuery(aspect="quality", ratings="z"),
    SystemsQuery(aspect="quality", ratings="rank", systems="machine"),
    SystemsQuery(aspect="quality", by="token-f1"),
    SystemsQuery(aspect="quality", method="davidson"),
    AgreementQuery(aspect="quality", judged="ratings"),
    SlicesQuery(aspect="quality", key="domain"),
    MatrixQuery(systems="machine"),
    AspectsQuery(),
    SystemsQuery(aspect="quality", filter="without-r1"),
    EvaluatorsQuery(aspect="quality", grouping="item", ratings="z", filter="without-r1"),
    EnhancedQuery(aspect="quality", references="original,good"),
    SystemsQuery(aspect="quality", method="bradley-terry", covariates="length+rater"),
    EvaluatorsQuery(aspect="quality", level="system", people="win-rate", coefficient="spearman", filter="without-r1"),
    EvaluatorsQuery(aspect="quality", level="dialogue", ratings="z"),
    EvaluatorsQuery(aspect="quality", evaluators="length,token-f1"),
    MatrixQuery(evaluators="length,token-f1"),
)


@pytest.fixture
def whole(request, scored, score):
    """Ratings, comparisons of both kinds, scores with two reference sets, a filter, and tables of every kind."""
    # The numbers of resamples are not in the rows, so tables with few of them are remembered apart.
    draws = "few" if "few_draws" in request.fixturenames else "usual"
    make_once(f"whole, {draws} draws", lambda: _complete(scored.project, score))
    return scored


def _complete(project, score):
    aspect = Rating.objects.filter(project=project)[0].aspect
    outputs = list(Output.objects.filter(project=project).select_related("system").order_by("item", "system"))
    for k, (a, b) in enumerate(pairwise(outputs)):
        if a.item_id == b.item_id:
            verdict = ("a", "b", "tie", "both_bad")[k % 4]
            rater = ("r0", "eva@example.org")[k % 2]
            Comparison.objects.create(
                project=project, output_a=a, output_b=b, aspect=aspect, rater=rater, verdict=verdict
            )
        Comparison.objects.create(
            project=project,
            output_a=a,
            reference=0,
            aspect=aspect,
            rater="r0",
            verdict=("a", "b", "cannot_decide")[k % 3],
        )
    for k, item in enumerate(project.items.order_by("key")):
        Item.objects.filter(pk=item.pk).update(meta={"domain": "ab"[k % 2]}, group=f"d{k // 2}")
    for k in range(4):
        system = System.objects.get(project=project, name="sys-a") if k else None
        dialogue = Dialogue.objects.create(project=project, key=f"d{k}", turns=["a", "b"], system=system)
        for number, rater in enumerate(("r0", "r1")):
            value = 1 + (k + number) % 4
            Rating.objects.create(project=project, dialogue=dialogue, aspect=aspect, rater=rater, value=value)
    RaterFilter.objects.create(project=project, name="without-r1", raters=["r1"], reason="hurried")
    references = [
        {"set": "good", "item": key, "position": 0, "text": f"words of {key}"}
        for key in project.items.values_list("key", flat=True)
    ]
    upload = take_in(project, {"references.jsonl": references})
    assert upload.state == "done", list_errors(upload)
    score(project, "token-f1", references="good")
    for query in QUERIES:
        get_leaderboard(project=project, query=query)
