"""The selection report of a project in a run: everybody chooses among checkpoints and variants, on items that none of
the evaluators learned from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext

from ..models import Evaluator
from ..selectors.catalogue import get_entry
from ..selectors.datasets import DataChoice, build_dataset
from ..services.scores import defaults_of
from ..services.selecting import SelectionWishes
from .score import load_trained

if TYPE_CHECKING:
    from scoring.ml import Dataset


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `selection`; the report is its result."""
    from scoring.ml import ScoringError
    from scoring.ml.selection import selection_report

    wishes, project = SelectionWishes(**params), context.project
    context.progress(0, None, "rows", "reading")
    data = build_dataset(project, DataChoice(references=wishes.references), dialogues=False)
    try:
        context.progress(0, None, "evaluators", "loading")
        choosers = {name: _load(project, name, wishes.aspect) for name in wishes.evaluators}
        unseen = without_training(data, choosers.values())
        report = selection_report(
            unseen, choosers, aspect=wishes.aspect, variants=wishes.variants or None, runs=wishes.runs,
            seed=wishes.seed, progress=lambda done, total: context.progress(done, total, "choices", "choosing"),
        )  # fmt: skip
    except ScoringError as error:
        raise BadInput(str(error)) from error
    return {
        "project": project.slug,
        "references": wishes.references,
        "runs": wishes.runs,
        "seed": wishes.seed,
        "n_items": len(unseen.items),
        "n_learned": len(data.items) - len(unseen.items),
        "signatures": {name: chooser.signature for name, chooser in choosers.items()},
        **report.as_dict(),
        "picks": [
            {"evaluator": row.evaluator, "kind": row.kind, **asdict(pick)} for row in report.rows for pick in row.picks
        ],
        "url": f"/projects/{project.slug}/systems/steps/#choices",
    }


def _load(project: Project, name: str, aspect: str) -> Any:
    """What was trained or applied under this name, else what the catalogue has; one that learned several aspects
    chooses by the one that people are asked about, if that is among them."""
    from scoring.ml import load

    row = Evaluator.objects.filter(project=project, slug=name).first()
    if row is not None and row.is_trained:
        several = get_entry(row.name).aspect == "many" and aspect in row.record.get("aspects", [])
        return load_trained(row, {"aspect": aspect} if several else {})
    if row is not None:
        return load(row.name, **row.options)
    entry = get_entry(name)
    return load(name, **defaults_of(entry, project))


def without_training(data: Dataset, choosers: Iterable[Any]) -> Dataset:
    """The items that none of them learned from, with all that is about them. Raises `BadInput` where none is left."""
    from scoring.ml.types import training_names

    seen = frozenset[str]().union(*(getattr(chooser, "trained_on", frozenset()) for chooser in choosers))
    kept = {item.id for item in data.items if seen.isdisjoint(training_names(item.group, item.id))}
    if not kept:
        raise BadInput(
            "There is no item that none of these evaluators learned from, so their choices would say nothing. Leave "
            "out what was trained on all of them, or train it with --folds 5."
        )
    return replace(
        data,
        items=tuple(row for row in data.items if row.id in kept),
        outputs=tuple(row for row in data.outputs if row.item in kept),
        ratings=tuple(row for row in data.ratings if row.item in kept),
        comparisons=tuple(row for row in data.comparisons if row.item in kept),
    )
