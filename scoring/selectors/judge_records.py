"""What an export says about a judge besides its options, and the answers that an upload brought."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from annotation.models import Upload, UploadChange
from annotation.parsers import canonical

from ..models import Evaluator, JudgeAnswer
from .judge_split import iterate_looks
from .score_sets import ANSWERS


def make_judge_record(evaluator: Evaluator) -> dict[str, Any]:
    """Return the model id of a judge, the examples in its prompts, and every look at its test part."""
    looks = [
        {"at": look.at.isoformat(), "figures": look.figures}
        for look in iterate_looks(evaluator.project, [evaluator.slug])
    ]
    record: dict[str, Any] = canonical({
        "model": evaluator.record.get("model", ""), "examples": evaluator.record.get("examples", []), "looks": looks,
    })  # fmt: skip
    return record


def list_imported_answers(upload: Upload) -> Iterator[QuerySet[JudgeAnswer]]:
    """Yield the existing answers from an upload, by range of primary keys."""
    for change in UploadChange.objects.filter(upload=upload, table=ANSWERS):
        for first, last in change.before["ids"]:
            yield JudgeAnswer.objects.filter(project=upload.project_id, pk__range=(first, last))
