"""Data for games: texts of systems for sampled items, and human rankings of the systems. Used by the worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count
from django.utils.translation import gettext as _

from annotation.models import Comparison, Item, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from scoring.boards.data.columns import Units
from scoring.boards.data.project_judgements import get_units, load_comparisons, load_ratings
from scoring.boards.systems.games import agreement_with_people

from .aspects import list_judged
from .games import wanted_outputs
from .inputs import ITEMS_PER_CHUNK, get_reference_set, read_references

if TYPE_CHECKING:
    from scoring.ml import Record

#: Maximum pairs of texts per run.
MOST_VERDICTS = 500_000


@dataclass(frozen=True)
class Texts:
    """The texts of every system (at each step) by label. `without` are systems without texts for the sampled items."""

    systems: Mapping[str, list[Record]]
    units: Units
    without: list[str]

    @property
    def n_pairs(self) -> int:
        """Number of pairs of texts for the same item."""
        times: dict[str, int] = defaultdict(int)
        for records in self.systems.values():
            for record in records:
                times[record.item] += 1
        return sum(n * (n - 1) // 2 for n in times.values())


def draw_texts(project: Project, *, subset: str, references: str, items: int, seed: int) -> Texts:
    """Return all texts for at most `items` sampled items with outputs of two or more systems.

    Raises `BadInput` if these are more pairs than a run may compare.
    """
    from scoring.ml import Record
    from scoring.ml.evaluators.comparative.systems import drawn_items

    wanted = wanted_outputs(project, subset)
    shared = wanted.values("item").annotate(n=Count("pk")).filter(n__gt=1).values_list("item__key", "item")
    numbers = dict(shared.iterator(chunk_size=20_000))
    chosen = [numbers[key] for key in drawn_items(numbers, items, seed)]
    against = get_reference_set(project, references) if references else None
    units, systems = get_units(project), defaultdict[str, list[Record]](list)
    for start in range(0, len(chosen), ITEMS_PER_CHUNK):
        part = chosen[start : start + ITEMS_PER_CHUNK]
        texts = read_references(against, item__in=part)
        about = Item.objects.filter(pk__in=part).values_list("pk", "key", "context", "source", "group")
        of = {pk: (key, tuple(map(str, context)), source, group) for pk, key, context, source, group in about}
        outputs = wanted.filter(item__in=part).order_by("item", "pk")
        for item, system, step, text in outputs.values_list("item_id", "system_id", "step", "text"):
            unit = units.units[units.code(system, step)]
            key, context, source, group = of[item]
            systems[unit.label].append(Record(text, tuple(texts[item]), context, source, key, unit.name, step, group))
    units.sort()
    every = Units(units.systems)
    for system, step in wanted.values_list("system_id", "step").distinct():
        every.code(system, step)
    without = sorted(unit.label for unit in every.units if unit.label not in systems)
    result = Texts(systems, units, without)
    if result.n_pairs > MOST_VERDICTS:
        raise BadInput(
            _("A run compares at most %(most)s pairs of texts, not %(n)s: choose fewer items or fewer systems.")
            % {"most": f"{MOST_VERDICTS:,}", "n": f"{result.n_pairs:,}"}
        )
    return result


def compare_with_people(project: Project, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rank correlation of a table of systems with human judgements, for every rated or compared aspect."""
    ways: dict[str, Any] = {
        "ratings": Rating.objects.filter(output__isnull=False),
        "comparisons": Comparison.objects.filter(output_b__isnull=False),
    }
    result = []
    for aspect, judged in list_judged(project, ways):
        if "ratings" in judged:
            result += agreement_with_people(table, load_ratings(project, aspect), aspect=aspect.name)
        if "comparisons" in judged:
            comparisons = load_comparisons(project, aspect, turing=False)
            result += agreement_with_people(table, comparisons, aspect=aspect.name)
    return result
