"""What people said, read from the database as columns for the boards (`scoring.boards.data.columns`): ratings
of one aspect, comparisons, Turing judgements."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from django.db.models import FloatField, Value
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Length

from annotation.models import Aspect, Campaign, Comparison, Judgement, Rating, System
from annotation.selectors.filters import get_active_filter
from evalapp.accounts.models import Project
from scoring.boards.data.columns import Comparisons, Ratings, Units, build_comparisons, build_ratings

if TYPE_CHECKING:
    pass

CHUNK = 20_000


def get_units(project: Project) -> Units:
    rows = System.objects.filter(project=project).values_list("pk", "name", "kind")
    return Units({pk: (name, kind) for pk, name, kind in rows})


def filter_of(project: Project, name: str) -> Callable[[str], bool]:
    """Whether the named filter drops a rater; nobody without a name. Raises for a withdrawn or unknown one."""
    if not name:
        return lambda rater: False
    return cache(get_active_filter(project, name).covers)


def judged_in(rows: Any, campaign: Campaign | None) -> Any:
    """Of ratings or comparisons those that this campaign brought; all without one."""
    if campaign is None:
        return rows
    return rows.filter(judgement__in=Judgement.objects.filter(campaign=campaign, current=True).values("pk"))


def load_ratings(project: Project, aspect: Aspect, *, filter: str = "", campaign: Campaign | None = None) -> Ratings:
    """All ratings of outputs for one aspect, or those of one campaign, without those of the raters whom the named
    filter leaves out. Ratings of whole dialogues belong to no output and are left out."""
    rated = judged_in(Rating.objects.filter(aspect=aspect, output__isnull=False), campaign)
    rows = rated.values_list(
        "output_id", "output__item__key", "output__item__group", "output__system_id", "output__step", "rater", "value",
        "simulated",
    )  # fmt: skip
    return build_ratings(rows.iterator(chunk_size=CHUNK), get_units(project), filter_of(project, filter))


def load_comparisons(
    project: Project,
    aspect: Aspect,
    *,
    turing: bool,
    filter: str = "",
    propensity: bool = False,
    campaign: Campaign | None = None,
) -> Comparisons:
    """Comparisons of two outputs, or (`turing`) of an output with a reference, for one aspect, or those of one
    campaign, without those of the raters whom the named filter leaves out; with `propensity` the chance with which each
    pair was taken. Side a is the one that stood first on the page."""
    compared = judged_in(Comparison.objects.filter(aspect=aspect, output_b__isnull=turing), campaign).order_by()
    nothing = Value(None, output_field=FloatField())
    fields = (
        "output_a__item__key", "output_a__item__group",
        "output_a__system_id", "output_a__step", "output_a_id", Length("output_a__text"),
        "output_b__system_id", "output_b__step", "output_b_id", Length("output_b__text"),
        "verdict", "simulated", "rater",
        KeyTransform("propensity", "meta") if propensity else nothing,
        nothing if turing else KeyTransform("swapped", "meta"),
    )  # fmt: skip
    rows = compared.values_list(*fields).iterator(chunk_size=CHUNK)
    return build_comparisons(
        ((row[0], row[1], row[2:6], None if turing else row[6:10], *row[10:]) for row in rows),
        get_units(project),
        filter_of(project, filter),
        turing=turing,
        with_propensity=propensity,
    )
