"""Judgements of a project from the database as columns for the boards (`scoring.boards.data.columns`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from django.db.models import Count, FloatField, Q, Value
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Length

from annotation.models import Aspect, Campaign, Comparison, Dialogue, Judgement, Output, Rating, System, Unit
from annotation.selectors.filters import get_active_filter
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import rater_names
from scoring.boards.base import Query
from scoring.boards.data.columns import (
    NO_SYSTEM,
    Comparisons,
    Ratings,
    Units,
    build_comparisons,
    build_judged,
    build_ratings,
    describe_compared,
    label_unit,
)
from scoring.selectors.aspects import find_campaign

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalapp.stats.agreement.judged import RaterJudgements

CHUNK = 20_000
#: Number of the system of dialogues without one.
NO_SYSTEM_CODE = 0


def get_units(project: Project) -> Units:
    """Return the systems of a project by primary key."""
    rows = System.objects.filter(project=project).values_list("pk", "name", "kind")
    return Units({pk: (name, kind) for pk, name, kind in rows})


def get_rater_filter(project: Project, name: str) -> Callable[[str], bool]:
    """Return whether the named filter drops a rater; without a name it drops none. Raises for a withdrawn filter."""
    if not name:
        return lambda rater: False
    return cache(get_active_filter(project, name).covers)


def filter_campaign(rows: Any, campaign: Campaign | None) -> Any:
    """Restrict ratings or comparisons to those from a campaign, if any."""
    if campaign is None:
        return rows
    return rows.filter(judgement__in=Judgement.objects.filter(campaign=campaign, current=True).values("pk"))


def load_ratings(
    project: Project, aspect: Aspect, *, filter: str = "", campaign: Campaign | None = None, with_chance: bool = False
) -> Ratings:
    """Return the ratings of outputs for an aspect. Ratings of dialogues belong to no output and are left out.

    `with_chance`: include ratings of outputs that a campaign chose, with their chances.
    """
    rated = filter_campaign(Rating.objects.filter(aspect=aspect, output__isnull=False), campaign)
    rows = rated.values_list(
        "output_id", "output__item__key", "output__item__group", "output__system_id", "output__step", "rater", "value",
        "simulated", KeyTransform("propensity", "meta"),
    )  # fmt: skip
    is_dropped = get_rater_filter(project, filter)
    return build_ratings(rows.iterator(chunk_size=CHUNK), get_units(project), is_dropped, with_chance=with_chance)


def load_comparisons(
    project: Project,
    aspect: Aspect,
    *,
    turing: bool,
    filter: str = "",
    propensity: bool = False,
    campaign: Campaign | None = None,
) -> Comparisons:
    """Return the comparisons of two outputs, or (`turing`) of an output with a reference, for an aspect.

    With `propensity` they have the probability with which an adaptive campaign chose each pair.
    """
    compared = filter_campaign(Comparison.objects.filter(aspect=aspect, output_b__isnull=turing), campaign).order_by()
    null = Value(None, output_field=FloatField())
    fields = (
        "output_a__item__key", "output_a__item__group",
        "output_a__system_id", "output_a__step", "output_a_id", Length("output_a__text"),
        "output_b__system_id", "output_b__step", "output_b_id", Length("output_b__text"),
        "verdict", "simulated", "rater",
        KeyTransform("propensity", "meta") if propensity else null,
        null if turing else KeyTransform("swapped", "meta"),
    )  # fmt: skip
    rows = compared.values_list(*fields).iterator(chunk_size=CHUNK)
    return build_comparisons(
        ((row[0], row[1], row[2:6], None if turing else row[6:10], *row[10:]) for row in rows),
        get_units(project),
        get_rater_filter(project, filter),
        turing=turing,
        with_propensity=propensity,
    )


def load_dialogues(project: Project, aspect: Aspect, filter: str = "") -> Ratings:
    """Return ratings of dialogues, each dialogue as the only output of an item."""
    units = Units({**get_units(project).systems, NO_SYSTEM_CODE: (NO_SYSTEM, "machine")})
    fields = ("dialogue_id", "dialogue__key", "dialogue__system_id", "rater", "value", "simulated")
    rated = Rating.objects.filter(aspect=aspect, dialogue__isnull=False).values_list(*fields)
    rows = (
        (pk, key, key, system or NO_SYSTEM_CODE, None, rater, value, simulated, None)
        for pk, key, system, rater, value, simulated in rated.iterator(chunk_size=CHUNK)
    )
    return build_ratings(rows, units, get_rater_filter(project, filter))


def load_turns(project: Project, dialogues: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the outputs that are turns of the dialogues, and the position of the dialogue of each.

    These are the outputs of items whose group is the dialogue, by the dialogue's system if it has one.
    """
    import numpy as np

    rows = Dialogue.objects.filter(pk__in=dialogues.tolist()).values_list("pk", "key", "system_id")
    named = {key: (pk, system) for pk, key, system in rows.iterator(chunk_size=CHUNK)}
    position = {pk: number for number, pk in enumerate(dialogues.tolist())}
    outputs = Output.objects.filter(project=project, item__group__in=list(named)).order_by("pk")
    turns = []
    for pk, group, system in outputs.values_list("pk", "item__group", "system_id").iterator(chunk_size=CHUNK):
        dialogue, wanted = named[group]
        if wanted in (None, system):
            turns.append((pk, position[dialogue]))
    pairs = np.array(turns, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


# ---- agreement ------------------------------------------------------------------------------------------------


def load_judged(project: Project, aspect: Aspect, way: str, query: Query) -> RaterJudgements:
    """Return the judgements of the aspect in this way, restricted to the query's campaign and filter."""
    details = _read_judgement_details(project)
    is_numeric = way in ("ratings", "dialogues")
    rows = (_read_ratings if is_numeric else _read_comparisons)(
        aspect, way, find_campaign(project, query.campaign_slug)
    )
    detailed = ((*row, *details.get(judgement, ("", float("nan"), float("nan")))) for *row, judgement in rows)
    return build_judged(detailed, get_rater_filter(project, query.rater_filter), numeric=is_numeric)


def _read_judgement_details(project: Project) -> dict[int, tuple[str, float, float]]:
    """Return campaign, seconds and time of each judgement made in a campaign."""
    rows = Judgement.objects.filter(campaign__project=project, current=True, passed=None).order_by()
    fields = rows.values_list("pk", "seconds", "created_at", "campaign__slug").iterator(CHUNK)
    return {
        pk: (slug, float("nan") if seconds is None else seconds, created.timestamp())
        for pk, seconds, created, slug in fields
    }


def _read_comparisons(aspect: Aspect, way: str, campaign: Campaign | None) -> Iterator[tuple[Any, ...]]:
    """Yield the six cells of a `JudgedRow` and the judgement."""
    turing = way == "turing"
    compared = filter_campaign(Comparison.objects.filter(aspect=aspect, output_b__isnull=turing), campaign).order_by()
    rows = compared.values_list(
        "output_a__item__key", "output_a__system__name", "output_a__step", "output_b__system__name", "output_b__step",
        "reference", "verdict", "rater", "simulated", "judgement",
    )  # fmt: skip
    for item, name_a, step_a, name_b, step_b, reference, verdict, *rest in rows.iterator(CHUNK):
        a = label_unit(name_a, step_a)
        if turing:
            yield verdict, f"{item}\t{a}\t{reference}", item, a, *rest
        else:
            yield *describe_compared(item, a, label_unit(name_b, step_b), verdict), *rest


def _read_ratings(aspect: Aspect, way: str, campaign: Campaign | None) -> Iterator[tuple[Any, ...]]:
    """Yield the six cells of a `JudgedRow` and the judgement."""
    ratings = filter_campaign(Rating.objects.filter(aspect=aspect), campaign).order_by()
    tail = ("value", "rater", "simulated", "judgement")
    if way == "dialogues":
        rated = ratings.filter(dialogue__isnull=False).values_list("dialogue__key", "dialogue__system__name", *tail)
        for key, system, value, *rest in rated.iterator(CHUNK):
            yield value, key, key, system or "", *rest
        return
    fields = ("output__item__key", "output__system__name", "output__step", *tail)
    rated = ratings.filter(output__isnull=False).values_list(*fields)
    for item, name, step, value, *rest in rated.iterator(CHUNK):
        system = label_unit(name, step)
        yield value, f"{item}\t{system}", item, system, *rest


def load_controls(project: Project, campaign: Campaign | None) -> dict[str, tuple[int, int]]:
    """Return rater -> number of control items answered and failed, in one campaign or in all."""
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
    counts = rows.values_list("annotator", "n", "failed")
    return {names[user]: (n, failed) for user, n, failed in counts if user in names}
