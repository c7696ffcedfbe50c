"""The judged aspects, and the kinds of judgements of each."""

from __future__ import annotations

from annotation.models import Aspect, Comparison, Item, Output, Rating, System
from scoring.selectors.aspects import list_judged


def test_each_aspect_has_its_kinds_in_project_order(cast):
    project = cast.project
    Aspect.objects.filter(project=project).delete()
    later, sooner, never = (
        Aspect.objects.create(project=project, name=name, low=1, high=5, position=place)
        for name, place in (("later", 2), ("sooner", 1), ("never", 3))
    )
    item = Item.objects.create(project=project, key="judged-1", context=["?"])
    texts = [
        Output.objects.create(
            project=project, item=item, system=System.objects.create(project=project, name=name), text=name
        )
        for name in ("one", "two")
    ]
    Rating.objects.create(project=project, output=texts[0], aspect=later, rater="r", value=3)
    Comparison.objects.create(
        project=project, output_a=texts[0], output_b=texts[1], aspect=sooner, rater="r", verdict="a"
    )
    rows = {"ratings": Rating.objects.all(), "comparisons": Comparison.objects.filter(output_b__isnull=False)}
    found = list_judged(project, rows)
    assert found == [(sooner, {"comparisons"}), (later, {"ratings"}), (never, frozenset())]
