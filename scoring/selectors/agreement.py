"""Agreement among people: reads what was judged as columns and hands it to `scoring.boards.agreement.raters`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Count, Q

from annotation.models import Aspect, Campaign, Comparison, Judgement, Rating, Unit
from annotation.selectors.filters import get_active_filter
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import rater_names
from evalapp.common.errors import BadInput, NotThere
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.base import Query
from scoring.boards.choices import JUDGED

from .aspects import find_campaign, list_judged
from .people import CHUNK, judged_in

if TYPE_CHECKING:
    from evalapp.stats.agreement.judged import RaterJudgements
NAMES = ("value", "unit", "item", "system", "rater", "seconds", "at", "source", "simulated")


@dataclass(frozen=True)
class Asked:
    """An aspect and one way in which it was judged."""

    aspect: Aspect
    judged: str


def list_asked(project: Project) -> list[Asked]:
    """Every aspect with every way in which it was judged."""
    ratings, comparisons = Rating.objects.all(), Comparison.objects.all()
    rows = {
        "ratings": ratings.filter(output__isnull=False),
        "comparisons": comparisons.filter(output_b__isnull=False),
        "turing": comparisons.filter(output_b__isnull=True),
        "dialogues": ratings.filter(dialogue__isnull=False),
    }
    return [Asked(aspect, name) for aspect, ways in list_judged(project, rows) for name in JUDGED if name in ways]


def choose_asked(project: Project, query: AgreementQuery) -> Asked:
    """The aspect and way of judging that a query means; without names the first there is."""
    asked = list_asked(project)
    if not asked:
        raise BadInput(
            f"Nobody has judged anything in {project.slug} yet. Upload ratings, or open a campaign to have outputs "
            "judged."
        )
    found = [row for row in asked if query.aspect in ("", row.aspect.name) and query.judged in ("", row.judged)]
    if not found:
        known = ", ".join(f"{row.aspect.name} ({row.judged})" for row in asked)
        raise NotThere(f"{query.aspect or query.judged} was not judged in {project.slug}. There are: {known}.")
    return found[0]


def load_judged(project: Project, aspect: Aspect, way: str, query: Query) -> RaterJudgements:
    """Every judgement of the aspect in this way, or those of the campaign and without the raters of the filter that the
    query names."""
    from evalapp.stats.agreement.judged import JudgementColumns, collect_judgements

    asked, told = Asked(aspect, way), recorded(project)
    left_out = get_active_filter(project, query.rater_filter) if query.rater_filter else None
    dropped: dict[str, bool] = {}
    n_filtered = 0
    columns: dict[str, list[Any]] = {name: [] for name in NAMES}
    for *row, rater, judgement, simulated in _rows(asked, find_campaign(project, query.campaign_slug)):
        if left_out is not None and dropped.setdefault(rater, left_out.covers(rater)):
            n_filtered += 1
            continue
        cells = (*row, rater, *told.get(judgement, (np.nan, np.nan, "")), simulated)
        for name, cell in zip(NAMES, cells, strict=True):
            columns[name].append(cell)
    numeric = asked.judged in ("ratings", "dialogues")
    return collect_judgements(JudgementColumns(**columns), numeric=numeric, n_filtered=n_filtered)


def recorded(project: Project) -> dict[int, tuple[float, float, str]]:
    """What campaigns know of each judgement: seconds, when, campaign."""
    rows = Judgement.objects.filter(campaign__project=project, current=True, passed=None).order_by()
    return {
        pk: (np.nan if seconds is None else seconds, created.timestamp(), slug)
        for pk, seconds, created, slug in rows.values_list("pk", "seconds", "created_at", "campaign__slug").iterator(
            CHUNK
        )
    }


def _rows(asked: Asked, campaign: Campaign | None) -> Iterator[tuple[Any, ...]]:
    """(value, unit, item, system, rater, judgement, simulated) of one aspect."""
    if asked.judged in ("ratings", "dialogues"):
        yield from _ratings(asked, campaign)
        return
    turing = asked.judged == "turing"
    found: Any = Comparison.objects.filter(aspect=asked.aspect, output_b__isnull=turing)
    names = (
        "output_a__item__key",
        "output_a__system__name",
        "output_a__step",
        "output_b__system__name",
        "output_b__step",
    )
    fields = (*names, "reference", "verdict", "rater", "judgement", "simulated")
    rows = judged_in(found, campaign).order_by().values_list(*fields).iterator(CHUNK)
    for item, name_a, step_a, name_b, step_b, reference, verdict, rater, judgement, simulated in rows:
        a = _label(name_a, step_a)
        if turing:
            yield verdict, f"{item}\t{a}\t{reference}", item, a, rater, judgement, simulated
            continue
        b = _label(name_b, step_b)
        if b < a:
            a, b, verdict = b, a, {"a": "b", "b": "a"}.get(verdict, verdict)
        yield verdict, f"{item}\t{a}\t{b}", item, "", rater, judgement, simulated


def _ratings(asked: Asked, campaign: Campaign | None) -> Iterator[tuple[Any, ...]]:
    found: Any = Rating.objects.filter(aspect=asked.aspect)
    tail = ("value", "rater", "judgement", "simulated")
    if asked.judged == "dialogues":
        rated = judged_in(found.filter(dialogue__isnull=False), campaign).order_by()
        of_dialogue = rated.values_list("dialogue__key", "dialogue__system__name", *tail).iterator(CHUNK)
        for key, system, value, rater, judgement, simulated in of_dialogue:
            yield value, key, key, system or "", rater, judgement, simulated
        return
    rows = judged_in(found.filter(output__isnull=False), campaign).order_by()
    fields = ("output__item__key", "output__system__name", "output__step", *tail)
    for item, name, step, value, rater, judgement, simulated in rows.values_list(*fields).iterator(CHUNK):
        system = _label(name, step)
        yield value, f"{item}\t{system}", item, system, rater, judgement, simulated


def _label(name: str, step: int | None) -> str:
    return name if step is None else f"{name} @ {step}"


def load_controls(project: Project, campaign: Campaign | None) -> dict[str, tuple[int, int]]:
    """Rater -> control items answered, and how many of them otherwise than expected, in one campaign or in all."""
    names = rater_names(project.pk)
    judgements = Judgement.objects.filter(campaign__project=project)
    if campaign is not None:
        judgements = judgements.filter(campaign=campaign)
    rows = (
        judgements.filter(current=True, passed__isnull=False, assignment__unit__kind=Unit.Kind.CONTROL)
        .order_by()
        .values("annotator")
        .annotate(n=Count("pk"), failed=Count("pk", filter=Q(passed=False)))
    )
    found = rows.values_list("annotator", "n", "failed")
    return {names[user]: (n, failed) for user, n, failed in found if user in names}
