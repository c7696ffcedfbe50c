"""From a trained evaluator to the row that pages know: its folder written whole, its record as plain values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from evalapp.common.models import Run

from ..models import Evaluator
from ..selectors.training import get_run_folder
from ..services.training import publish_evaluator

if TYPE_CHECKING:
    from scoring.ml.cross_fitted import CrossFitted
    from scoring.ml.trained import TrainedEvaluator

#: Rows of a curve that are kept with the evaluator; its train_log.jsonl has all.
MOST_ROWS = 400


def publish(
    run: Run, slug: str, evaluator: TrainedEvaluator | CrossFitted, choice: Mapping[str, Any] | None = None
) -> Evaluator:
    """Write the folder, then make it known; until the row stands nobody sees the folder, and once it stands the folder
    is not written again: a worker that was believed dead may come by late. Where the row never comes, the end of the
    run takes the folder along (`services.artefacts.give_up_evaluator`)."""
    done = Evaluator.objects.filter(project=run.project, run=run, kind=Evaluator.Kind.TRAINED).first()
    if done is not None:
        return done
    folder = Path(settings.ARTEFACTS_DIR) / get_run_folder(run)
    evaluator.save_pretrained(folder)
    return publish_evaluator(
        run=run,
        slug=slug,
        name=evaluator.name,
        folder=get_run_folder(run),
        signature=evaluator.signature,
        record={**describe(evaluator, folder), "choice": dict(choice or {})},
        options=plain(dict(members_of(evaluator)[0].settings)),
    )


def members_of(evaluator: TrainedEvaluator | CrossFitted) -> Sequence[TrainedEvaluator]:
    """The models of the folds, or the one model."""
    from scoring.ml.cross_fitted import CrossFitted

    return evaluator.members if isinstance(evaluator, CrossFitted) else [evaluator]


def describe(evaluator: TrainedEvaluator | CrossFitted, folder: Path) -> dict[str, Any]:
    """What people are told: `profile`, `seed`, `aspects`, `encoder`, `folds` (0: one model), `models` (a record for
    each: examples, metrics, agreement with people, groups, curve) and `files` with sizes and hashes."""
    members = members_of(evaluator)
    first = members[0].artefact
    source = first.encoder
    encoder = None if source is None else {"name": source.short_name, "weights": source.weights[:8]}
    return plain(
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
    found = {**record.as_dict(), "n_groups": len(record.groups), "n_dev_groups": len(record.dev_groups)}
    found["log"] = _thinned([dict(row) for row in record.log])
    return found


def _thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(rows) <= MOST_ROWS:
        return rows
    return [rows[place * (len(rows) - 1) // (MOST_ROWS - 1)] for place in range(MOST_ROWS)]


def list_files(folder: Path) -> list[dict[str, Any]]:
    """Every file with its size and hash, names with the fold's folder, in the order of names."""
    return [
        {"name": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "sha256": _hash(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain(value: Any) -> Any:
    """The value as JSON has it; what is not a finite number becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return json.loads(json.dumps(value, default=float))
