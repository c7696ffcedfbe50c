"""Further tables of evaluators: by part of the items, against each other, by aspect. Reads the rows;
`scoring.boards.further` computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.models import Item, Output, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from scoring.boards.further import aspects_table, matrix_table, part_column, slices_table

from ..models import ScoreSet
from .aspects import list_judged
from .columns import CHUNK, load_columns, load_outputs
from .compared import compared_sets
from .leaderboards import FIGURES, AspectsQuery, EvaluatorsQuery, MatrixQuery, SlicesQuery
from .meta_evaluation import describe_set, load_people, load_scored, outside_training

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .columns import ScoreColumns

#: Items that are looked at for the keys that a project's items have.
LOOKED_AT = 2000
#: Of items' `meta`, which may hold long texts, so many are in memory at once.
METAS = 500
#: Longer texts name no part.
MOST_LETTERS = 200
#: Values of a key beyond which it names items rather than parts.
MOST_VALUES = 200


def item_keys(project: Project) -> list[str]:
    """Keys of the items' `meta` with two values or more, yet not one for every item and no long texts; those most used
    first."""
    found: dict[str, Counter[str]] = {}
    long: set[str] = set()
    rows = Item.objects.filter(project=project).exclude(meta={}).order_by("pk").values_list("meta", flat=True)
    for meta in rows[:LOOKED_AT].iterator(chunk_size=METAS):
        for key, value in meta.items():
            if isinstance(value, str) and len(value) > MOST_LETTERS:
                long.add(key)
            elif isinstance(value, str | int | bool | float):
                found.setdefault(key, Counter())[str(value)] += 1
    fits = [key for key, values in found.items() if 2 <= len(values) <= MOST_VALUES and key not in long]
    return sorted(fits, key=lambda key: (-sum(found[key].values()), key))


def rank_slices(project: Project, query: SlicesQuery) -> dict[str, Any]:
    """Every evaluator in every part of the items; without a key by the first that the items have."""
    key = query.key or next(iter(item_keys(project)), "")
    if not key:
        raise BadInput(
            f"The items of {project.slug} have no key that parts them. Give them one in `meta` (items.jsonl), "
            'such as {"domain": "news"}.'
        )
    wished = {name: getattr(query, name) for name in ("aspect", "systems", "references", "ratings", "filter")}
    aspect, people = load_people(project, EvaluatorsQuery(**wished))
    sets = compared_sets(project, query, aspect.name)
    return slices_table(
        people,
        [load_scored(score_set, aspect, people) for score_set in sets],
        _part(aspect, people.output, key),
        {**asdict(query), "key": key},
        aspect=aspect.name,
        outside=outside_training(sets, people),
    )


def _part(aspect: Any, outputs: NDArray[np.int64], key: str) -> NDArray[Any]:
    """The value of this key for the item of every rated output. Whatever else stands in `meta`, long texts maybe, is
    let go at once, and equal values are one text."""
    rated = Rating.objects.filter(aspect=aspect, output__isnull=False).values("output")
    rows = Output.objects.filter(pk__in=rated)
    of_output = dict(rows.values_list("pk", "item_id").iterator(chunk_size=CHUNK))
    items = Item.objects.filter(pk__in=rows.values("item")).order_by().values_list("pk", "meta")
    names: dict[str, str] = {}
    of_item: dict[int | None, str] = {}
    for item, meta in items.iterator(chunk_size=METAS):
        if (value := meta.get(key)) is not None:
            of_item[item] = names.setdefault(str(value), str(value))
    return part_column(of_item.get(of_output.get(int(output))) for output in outputs)


def tabulate_matrix(project: Project, query: MatrixQuery) -> dict[str, Any]:
    """Evaluators against each other over all outputs of the wanted systems, rated or not."""
    sets = one_of_each(compared_sets(project, query), query.aspect)
    outputs, cluster, system = _outputs(project, query.systems)
    # One evaluator after the other in memory, as the statistics go through them.
    columns = np.full((len(sets), len(outputs)), np.nan).T
    last: ScoreColumns | None = None
    for number, score_set in enumerate(sets):
        found = load_columns(score_set)
        if last is None or not np.array_equal(found.output, last.output):
            place = found.places(outputs)
        columns[:, number] = found.at(place)
        last = found
    return matrix_table(
        [describe_set(score_set, columns[:, number]) for number, score_set in enumerate(sets)],
        columns, cluster, system, asdict(query), aspect=query.aspect,
    )  # fmt: skip


def one_of_each(sets: Sequence[ScoreSet], aspect: str) -> list[ScoreSet]:
    """One set of each evaluator: of several aspects the one asked for, else the first."""
    found: dict[int, ScoreSet] = {}
    for score_set in sets:
        if score_set.evaluator_id not in found or (score_set.aspect and score_set.aspect == aspect):
            found[score_set.evaluator_id] = score_set
    return list(found.values())


def _outputs(project: Project, subset: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of outputs with their group and their system at a step, in the order of items and systems."""
    found = load_outputs(project)
    order = np.lexsort((found.system, found.item))
    order = order[found.units.wanted(subset)[found.system[order]]] if len(order) else order
    return found.output[order], found.cluster[order], found.system[order]


def rated_aspects(project: Project) -> list[str]:
    """Aspects of which outputs were rated, in the project's order."""
    rated = list_judged(project, {"ratings": Rating.objects.filter(output__isnull=False)})
    return [aspect.name for aspect, ways in rated if ways]


def queries_by_aspect(project: Project, query: AspectsQuery) -> list[EvaluatorsQuery]:
    """The main table of every aspect, asked for as the page of that aspect would."""
    return [EvaluatorsQuery(aspect=name, **asdict(query)) for name in rated_aspects(project)]


def tabulate_aspects(tables: Sequence[Mapping[str, Any]], query: AspectsQuery) -> dict[str, Any]:
    figure = FIGURES.get(query.coefficient, query.coefficient)
    return aspects_table(tables, {**asdict(query), "figure": figure})
