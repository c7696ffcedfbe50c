"""The selection report of a project: each evaluator selects among checkpoints and variants, on items that none of the
evaluators was trained on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext

from ..models import Evaluator
from ..selectors.catalogue import get_entry
from ..selectors.datasets import DataChoice, build_dataset
from ..services.reports import SelectionOptions
from ..services.scores import get_default_options
from .score import load_trained
from .shared import get_trained_on, is_seen, refuse_scoring_errors

if TYPE_CHECKING:
    from scoring.ml import Dataset


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `selection`; its result is the report."""
    from scoring.ml.selection import selection_report

    options, project = SelectionOptions(**params), context.project
    context.progress(0, None, "rows", "reading")
    data = build_dataset(project, DataChoice(references=options.references), dialogues=False)
    with refuse_scoring_errors():
        context.progress(0, None, "evaluators", "loading")
        choosers = {name: _load(project, name, options.aspect) for name in options.evaluators}
        unseen = without_training(data, choosers.values())
        report = selection_report(
            unseen, choosers, aspect=options.aspect, variants=options.variants or None, runs=options.runs,
            seed=options.seed, progress=lambda done, total: context.progress(done, total, "choices", "choosing"),
        )  # fmt: skip
    return {
        "project": project.slug,
        "references": options.references,
        "runs": options.runs,
        "seed": options.seed,
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
    """Load the evaluator of this name in the project, or in the catalogue; one with several aspects scores `aspect`."""
    from scoring.ml import load

    row = Evaluator.objects.filter(project=project, slug=name).first()
    if row is not None and row.is_trained:
        several = get_entry(row.name).aspect == "many" and aspect in row.record.get("aspects", [])
        return load_trained(row, {"aspect": aspect} if several else {})
    if row is not None:
        return load(row.name, **row.options)
    entry = get_entry(name)
    return load(name, **get_default_options(entry, project))


def without_training(data: Dataset, choosers: Iterable[Any]) -> Dataset:
    """Return the items that no evaluator was trained on, with their outputs and judgements.

    Raises `BadInput` if none is left.
    """
    trained_on = frozenset[str]().union(*map(get_trained_on, choosers))
    kept = {item.id for item in data.items if not is_seen(trained_on, item.group, item.id)}
    if not kept:
        text = _(
            "Each item is in the training data of at least one evaluator, so their selections would be no evidence. "
            "Leave out those that were trained on all items, or train them with --folds 5."
        )
        raise BadInput(text)
    return replace(
        data,
        items=tuple(row for row in data.items if row.id in kept),
        outputs=tuple(row for row in data.outputs if row.item in kept),
        ratings=tuple(row for row in data.ratings if row.item in kept),
        comparisons=tuple(row for row in data.comparisons if row.item in kept),
    )
