"""Small test data created through the models, one table at a time."""

from __future__ import annotations

from annotation.models import Aspect, Item, Output, Rating, Reference, ReferenceSet, System
from evalapp.accounts.models import Project


def make_items(project: Project, n: int = 4, references: int = 2) -> list[Item]:
    original, _ = ReferenceSet.objects.get_or_create(project=project, name="original")
    items = Item.objects.bulk_create(
        Item(project=project, key=f"i{k:03d}", context=[f"Hello number {k}?", "Yes?"], source=None, group=f"g{k:03d}")
        for k in range(n)
    )
    Reference.objects.bulk_create(
        Reference(set=original, item=item, position=position, text=f"Answer {position} to {item.key}.")
        for item in items
        for position in range(references)
    )
    return items


def make_outputs(project: Project, items: list[Item], systems: tuple[str, ...] = ("sys-a", "sys-b")) -> list[Output]:
    rows = [System.objects.get_or_create(project=project, name=name)[0] for name in systems]
    return Output.objects.bulk_create(
        Output(project=project, item=item, system=system, text=f"{system.name} says something to {item.key}.")
        for system in rows
        for item in items
    )


def make_ratings(project: Project, outputs: list[Output], aspect: str = "quality", raters: int = 2) -> Aspect:
    row, _ = Aspect.objects.get_or_create(project=project, name=aspect, defaults={"low": 1, "high": 5})
    Rating.objects.bulk_create(
        Rating(project=project, output=output, aspect=row, rater=f"r{rater}", value=1 + (index * 7 + rater) % 5)
        for index, output in enumerate(outputs)
        for rater in range(raters)
    )
    return row
