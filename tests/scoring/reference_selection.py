"""A transparent `ream` in place of a trained one: the reliability of a set is the share of the alphabet's first ten
letters in its references, so a reference helps if it brings a new letter."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from annotation.models import Item, Reference, ReferenceSet
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.ml.evaluators.ream.annotate import Annotation, Search, choose_references
from scoring.models import Evaluator
from scoring.pipelines import reference_selection as pipeline
from scoring.services.reference_selection import ReferenceSelection, start_preview, start_reference_selection
from tests.scoring.training import make_trained

LETTERS = "abcdefghij"


def worth(texts: Sequence[str], skip: str = "") -> float:
    return sum(letter in " ".join(texts) for letter in LETTERS if letter not in skip) / 10


class SeeThrough:
    """A member as used by the pipeline."""

    def __init__(self, slug: str, trained_on: frozenset[str] = frozenset(), skip: str = "") -> None:
        self.signature, self.trained_on, self.skip = f"{slug}|see-through", trained_on, skip
        self.asked: list[str] = []

    def annotate(self, items: Any, candidates: Any, *, most: int, min_gain: float, greedy: bool, start: str, seed: int):
        (item,), (texts,) = items, candidates
        self.asked.append(item.id)
        rng = np.random.default_rng([seed, *item.id.encode()])
        own = [item.references[int(rng.integers(len(item.references)))]] if item.references else []
        own = list(item.references) if start == "all" else own

        def judge(sets: Sequence[Sequence[str]]) -> list[float]:
            return [worth(each, self.skip) for each in sets]

        found: Annotation = choose_references(item.id, own, texts, judge, Search(most, min_gain, greedy), rng=rng)
        return [found]

    def reliabilities(self, _query: Any, sets: Sequence[Sequence[str]]) -> list[float]:
        return [worth(each, self.skip) for each in sets]


def see_through(monkeypatch: pytest.MonkeyPatch, project: Project, **members: list[SeeThrough]) -> None:
    """Evaluators with these slugs in the project, answered by these members."""

    for slug in members:
        row = make_trained(project, slug, "ream")
        Evaluator.objects.filter(pk=row.pk).update(options={"metric": "bleu-star"})

    def load(evaluator: Evaluator, _options: Any) -> Any:
        return SimpleNamespace(signature=f"{evaluator.slug}|see-through", members=members[evaluator.slug])

    monkeypatch.setattr(pipeline, "load_trained", load)
    monkeypatch.setattr(pipeline, "list_members", lambda found: found.members)


def fill_references(project: Project, n: int = 4) -> list[Item]:
    """Items with the references `a b`, `c`, `a`, `d e`, each in its own group."""
    original, _ = ReferenceSet.objects.get_or_create(project=project, name="original")
    items = []
    for k in range(n):
        item = Item.objects.create(project=project, key=f"k{k}", context=["Hello?"], group=f"g{k}")
        for position, text in enumerate(("a b", "c", "a", "d e")):
            Reference.objects.create(set=original, item=item, position=position, text=text)
        items.append(item)
    return items


def select_references(project: Project, user: Any = None, **options: Any) -> Run:
    """Selects references synchronously."""
    asked = ReferenceSelection(**{"evaluator": "judge", "into": "chosen", **options})
    run = execute_run(start_reference_selection(project=project, user=user, options=asked, send=False).pk)
    assert run is not None
    return run


def preview(project: Project, **options: Any) -> Run:
    asked = ReferenceSelection(**{"evaluator": "judge", **options})
    run = execute_run(start_preview(project=project, options=asked, send=False).pk)
    assert run is not None
    return run


def list_texts(project: Project, name: str, item: Item | None = None) -> list[str]:
    """The texts of a set in order, for one item or for all."""
    rows = Reference.objects.filter(set__project=project, set__name=name)
    if item is not None:
        rows = rows.filter(item=item)
    return list(rows.order_by("item", "position").values_list("text", flat=True))
