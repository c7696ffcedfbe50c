"""What people said, read from the database as columns for the boards (`scoring.boards.data.columns`): ratings
of one aspect, comparisons, Turing judgements."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import FloatField, Value
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Length

from annotation.models import Aspect, Campaign, Comparison, Judgement, Rating, System
from annotation.selectors.filters import get_active_filter
from evalapp.accounts.models import Project
from evalapp.stats.agreement.judged import FLIPPED
from scoring.boards.data.columns import Comparisons, Labels, Ratings, Units, named_by, number_raters

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 20_000


def get_units(project: Project) -> Units:
    rows = System.objects.filter(project=project).values_list("pk", "name", "kind")
    return Units({pk: (name, kind) for pk, name, kind in rows})


def left_out(project: Project, filter: str, raters: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which of these raters the named filter covers; none without a name. Raises for a withdrawn or unknown one."""
    if not filter:
        return np.zeros(len(raters), dtype=bool)
    found = get_active_filter(project, filter)
    return np.array([found.covers(rater) for rater in raters], dtype=bool)


def judged_in(rows: Any, campaign: Campaign | None) -> Any:
    """Of ratings or comparisons those that this campaign brought; all without one."""
    if campaign is None:
        return rows
    return rows.filter(judgement__in=Judgement.objects.filter(campaign=campaign, current=True).values("pk"))


def load_ratings(project: Project, aspect: Aspect, *, filter: str = "", campaign: Campaign | None = None) -> Ratings:
    """All ratings of outputs for one aspect, or those of one campaign, without those of the raters whom the named
    filter leaves out. Ratings of whole dialogues belong to no output and are left out."""
    units, items, groups, raters = get_units(project), Labels(), Labels(), Labels()
    rated = judged_in(Rating.objects.filter(aspect=aspect, output__isnull=False), campaign)
    rows = rated.values_list(
        "output_id",
        "output__item__key",
        "output__item__group",
        "output__system_id",
        "output__step",
        "rater",
        "value",
        "simulated",
    )
    # Compact columns from the start: a million ratings take 50 MB, not the many times more of their Python objects.
    columns = [array("q"), array("q"), array("q"), array("q"), array("q"), array("d"), array("b")]
    for output, item, group, system, step, rater, value, simulated in rows.iterator(chunk_size=CHUNK):
        unit = units.code(system, step)
        codes = (output, items.code(item), groups.code(group), unit, raters.code(rater), value, simulated)
        for column, code in zip(columns, codes, strict=True):
            column.append(code)
    output, item, cluster, system, rater, value, simulated = (np.array(column) for column in columns)
    item, cluster = items.sort()[item], groups.sort()[cluster]
    system, rater = units.sort()[system], raters.sort()[rater]
    dropped = left_out(project, filter, raters.names)[rater]
    n_filtered = int(dropped.sum())
    if n_filtered:
        kept = [column[~dropped] for column in (output, item, cluster, system, rater, value, simulated)]
        output, item, cluster, system, rater, value, simulated = kept
    new = number_raters(rater, len(raters.names), (item, system, np.unique(value, return_inverse=True)[1]))
    rater, names = new[rater], named_by(raters.names, new)
    order = np.lexsort((rater, value, system, item))
    sorted_columns: list[Any] = [column[order] for column in (output, item, cluster, system, rater, value)]
    simulated = simulated[order].astype(bool)
    return Ratings(*sorted_columns, simulated=simulated, units=units, raters=names, n_filtered=n_filtered)


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
    units, items, groups, raters = get_units(project), Labels(), Labels(), Labels()
    rows = (
        judged_in(Comparison.objects.filter(aspect=aspect, output_b__isnull=turing), campaign)
        .order_by()
        .values_list(
            "output_a__item__key",
            "output_a__item__group",
            "output_a__system_id",
            "output_a__step",
            "output_a_id",
            "output_b_id",
            "output_b__system_id",
            "output_b__step",
            "verdict",
            "simulated",
            "rater",
            Length("output_a__text"),
            Length("output_b__text"),
            KeyTransform("propensity", "meta") if propensity else Value(None, output_field=FloatField()),
            Value(None, output_field=FloatField()) if turing else KeyTransform("swapped", "meta"),
        )
    )
    found = [
        (
            items.code(item),
            groups.code(group),
            units.code(system_a, step_a),
            -1 if system_b is None else units.code(system_b, step_b),
            verdict,
            simulated,
            raters.code(rater),
            0 if system_b is None else long_a - long_b,
            np.nan if chance is None else chance,
            output_a,
            -1 if output_b is None else output_b,
        )
        for (
            item, group, system_a, step_a, output_a, output_b, system_b, step_b, verdict, simulated, rater, long_a,
            long_b, chance, _
        ) in (_as_shown(row) for row in rows.iterator(chunk_size=CHUNK))
    ]  # fmt: skip
    columns: Any = zip(*found, strict=True) if found else ((),) * 11
    item, group, system_a, system_b, verdict, simulated, rater, longer, chances, *outputs = columns
    # One code more than there are units: -1, which stands for a reference, stays -1.
    new = np.append(units.sort(), -1)
    rated = raters.sort()[np.array(rater, dtype=np.int64)]
    kept = ~left_out(project, filter, raters.names)[rated]
    item, group = items.sort()[np.array(item, dtype=np.int64)], groups.sort()[np.array(group, dtype=np.int64)]
    a, b = (new[np.array(side, dtype=np.int64)] for side in (system_a, system_b))
    verdict, simulated = np.array(verdict, dtype=np.str_), np.array(simulated, dtype=np.bool_)
    said = np.unique(verdict, return_inverse=True)[1]
    numbers = number_raters(rated[kept], len(raters.names), (item[kept], a[kept], b[kept] + 1, said[kept]))
    rated, names = numbers[rated], named_by(raters.names, numbers)
    order = np.lexsort((rated, verdict, b, a, item))
    order = order[kept[order]]
    sides = (item[order], group[order], a[order], b[order], verdict[order], simulated[order])
    by = None if turing else np.array(longer, dtype=np.float64)[order]
    taken = np.array(chances, dtype=np.float64)[order] if propensity else None
    of = [np.array(side, dtype=np.int64)[order] for side in outputs]
    return Comparisons(*sides, units, rated[order], names, int((~kept).sum()), by, taken, *of)


def _as_shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of `load_comparisons` with the sides as they stood on the page: campaigns keep `swapped` where the second
    output stood first."""
    if not row[-1]:
        return row
    item, group, system_a, step_a, output_a, output_b, system_b, step_b, verdict, simulated, rater, a, b, *told = row
    turned = FLIPPED.get(verdict, verdict)
    return (item, group, system_b, step_b, output_b, output_a, system_a, step_a, turned, simulated, rater, b, a, *told)
