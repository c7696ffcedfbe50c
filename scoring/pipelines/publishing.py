"""Save a trained evaluator: its folder, and the row with its record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from evalapp.common.models import Run

from ..models import Evaluator
from ..selectors.training import get_run_folder
from ..services.evaluators import publish_evaluator
from .shared import to_json

if TYPE_CHECKING:
    from scoring.ml.cross_fitted import CrossFitted
    from scoring.ml.trained import TrainedEvaluator

#: Maximum number of rows of a training curve in the record; train_log.jsonl has all.
MOST_ROWS = 400


def publish(
    run: Run, slug: str, evaluator: TrainedEvaluator | CrossFitted, choice: Mapping[str, Any] | None = None
) -> Evaluator:
    """Write the folder, then create the row, unless it exists: a worker believed lost may have created it.

    If the run ends without a row, `services.artefacts.give_up_evaluator` removes the folder.
    """
    published = Evaluator.objects.filter(project=run.project, run=run, kind=Evaluator.Kind.TRAINED).first()
    if published is not None:
        return published
    folder = Path(settings.ARTEFACTS_DIR) / get_run_folder(run)
    evaluator.save_pretrained(folder)
    row = Evaluator(
        project=run.project, run=run, kind=Evaluator.Kind.TRAINED, slug=slug, name=evaluator.name,
        folder=get_run_folder(run), signature=evaluator.signature[:500],
        options=to_json(dict(list_members(evaluator)[0].settings)),
        record={**describe(evaluator, folder), "choice": dict(choice or {})},
    )  # fmt: skip
    return publish_evaluator(run=run, row=row)


def list_members(evaluator: TrainedEvaluator | CrossFitted) -> Sequence[TrainedEvaluator]:
    """Return the models of the folds, or the only model."""
    from scoring.ml.cross_fitted import CrossFitted

    return evaluator.members if isinstance(evaluator, CrossFitted) else [evaluator]


def describe(evaluator: TrainedEvaluator | CrossFitted, folder: Path) -> dict[str, Any]:
    """Return the record of an evaluator.

    `profile`, `seed`, `aspects`, `encoder`, `folds` (0: one model), `models` (for each its examples, metrics, agreement
    with human judgements, groups and curve) and `files` with sizes and hashes.
    """
    members = list_members(evaluator)
    first = members[0].artefact
    source = first.encoder
    encoder = None if source is None else {"name": source.short_name, "weights": source.weights[:8]}
    return to_json(  # type: ignore[no-any-return]
        {
            "profile": first.profile,
            "seed": first.seed,
            "aspects": list(first.aspects),
            "encoder": encoder if encoder is None else {**encoder, "trained": first.embedded},
            "folds": len(members) if len(members) > 1 else 0,
            "models": [_describe_model(member) for member in members],
            "files": list_files(folder),
        }
    )


def _describe_model(member: TrainedEvaluator) -> dict[str, Any]:
    record = member.record
    rows = [dict(row) for row in record.log]
    if len(rows) > MOST_ROWS:
        rows = [rows[place * (len(rows) - 1) // (MOST_ROWS - 1)] for place in range(MOST_ROWS)]
    return {**record.as_dict(), "n_groups": len(record.groups), "n_dev_groups": len(record.dev_groups), "log": rows}


def list_files(folder: Path) -> list[dict[str, Any]]:
    """Return name, size and hash of every file, sorted by name."""
    return [
        {"name": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "sha256": _hash(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
