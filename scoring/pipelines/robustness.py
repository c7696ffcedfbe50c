"""The robustness report of an evaluator: scores of each kind of text, compared with the items' originals."""

from __future__ import annotations

from typing import Any

from evalapp.common.runner import RunContext

from ..selectors.catalogue import get_entry, parse_options
from ..selectors.training import find_trained, list_trained
from ..selectors.written_kinds import KINDS, texts_by_kind
from ..services.reports import RobustnessOptions, no_texts
from .score import load_trained
from .shared import get_trained_on, is_seen, refuse_scoring_errors, to_json


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `robustness`; its result is the report."""
    from scoring.ml import load
    from scoring.ml.evaluators.perception.robustness import robustness

    options, project = RobustnessOptions(**params), context.project
    context.progress(0, None, "texts", "loading")
    kinds = texts_by_kind(project, options.sample, options.seed)
    if not any(records for kind, records in kinds.items() if kind != "MGE"):
        raise no_texts(project)
    total = sum(map(len, kinds.values()))
    with refuse_scoring_errors():
        if list_trained(project).filter(slug=options.evaluator).exists():
            scorer: Any = load_trained(find_trained(project, options.evaluator), options.options)
        else:
            scorer = load(options.evaluator, **parse_options(get_entry(options.evaluator), options.options))
        rows = robustness(scorer, kinds, progress=lambda done: context.progress(done, total, "texts", "scoring"))
    records = [record for group in kinds.values() for record in group]
    trained_on = get_trained_on(scorer)
    return {
        "project": project.slug,
        "evaluator": options.evaluator,
        "signature": scorer.signature,
        "sample": options.sample,
        "seed": options.seed,
        "n_in_training": sum(is_seen(trained_on, record.group, record.item) for record in records),
        "rows": [
            {"kind": row.kind, "what": KINDS[row.kind], "n": row.n}
            | {key: to_json(float(getattr(row, key))) for key in ("score", "mean", "sd")}
            for row in rows
        ],
        "url": f"/projects/{project.slug}/evaluators/robustness/",
    }
