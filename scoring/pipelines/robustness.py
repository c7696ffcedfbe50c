"""The robustness report of one evaluator in a run: scores of every kind of text against the items' originals."""

from __future__ import annotations

import math
from typing import Any

from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext

from ..selectors.catalogue import get_entry, parse_options
from ..selectors.training import find_trained, list_trained
from ..selectors.written_kinds import KINDS, texts_by_kind
from ..services.robustness import NOTHING, RobustnessWishes
from .score import load_trained


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `robustness`; the report is its result."""
    from scoring.ml import ScoringError, load
    from scoring.ml.evaluators.perception.robustness import robustness
    from scoring.ml.types import training_names

    wishes, project = RobustnessWishes(**params), context.project
    context.progress(0, None, "texts", "loading")
    kinds = texts_by_kind(project, wishes.sample, wishes.seed)
    if not any(records for kind, records in kinds.items() if kind != "MGE"):
        raise BadInput(NOTHING.format(slug=project.slug))
    total = sum(map(len, kinds.values()))
    try:
        if list_trained(project).filter(slug=wishes.evaluator).exists():
            found: Any = load_trained(find_trained(project, wishes.evaluator), wishes.options)
        else:
            found = load(wishes.evaluator, **parse_options(get_entry(wishes.evaluator), wishes.options))
        rows = robustness(found, kinds, progress=lambda done: context.progress(done, total, "texts", "scoring"))
    except ScoringError as error:
        raise BadInput(str(error)) from error
    seen = getattr(found, "trained_on", None) or frozenset()
    return {
        "project": project.slug,
        "evaluator": wishes.evaluator,
        "signature": found.signature,
        "sample": wishes.sample,
        "seed": wishes.seed,
        "n_in_training": sum(
            not seen.isdisjoint(training_names(record.group, record.item))
            for records in kinds.values() for record in records
        ) if seen else 0,
        "rows": [
            {"kind": row.kind, "what": KINDS[row.kind], "n": row.n}
            | {key: _number(getattr(row, key)) for key in ("score", "mean", "sd")}
            for row in rows
        ],
        "url": f"/projects/{project.slug}/evaluators/robustness/",
    }  # fmt: skip


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
