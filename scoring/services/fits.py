"""Store the scores of the default assistant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.services.bulk import insert_rows
from evalapp.common import audit
from evalapp.common.errors import Conflict
from evalapp.common.models import Run
from scoring.boards.choices import ASSISTANT

from ..models import Evaluator, Score, ScoreSet
from .scores import COLUMNS, NewScore, score_row


@dataclass(frozen=True)
class AspectFit:
    """The scores of an aspect with their signatures."""

    aspect: str
    signature: str
    short: str
    scores: Iterable[NewScore]


def store_fit(
    *, run: Run, options: Mapping[str, Any], record: Mapping[str, Any], fits: Iterable[AspectFit]
) -> list[ScoreSet]:
    """Replace the scores of each aspect; call it in a transaction, in which `finish_score_set` follows for each set."""
    row, created = Evaluator.objects.get_or_create(
        project=run.project, slug=ASSISTANT, defaults={"name": ASSISTANT, "kind": Evaluator.Kind.BASELINE}
    )
    if not row.is_assistant:
        text = _("The name %(name)s belongs to another evaluator. Delete that one first.")
        raise Conflict(text % {"name": ASSISTANT})
    Evaluator.objects.filter(pk=row.pk).update(options=dict(options), record=dict(record), run=run)
    if created:
        audit.record(verb="evaluator.stored", project=run.project, actor=run.created_by, object=row)
    result = []
    for fit in fits:
        # An import may have brought further sets.
        first, *others = [
            *ScoreSet.objects.filter(evaluator=row, aspect=fit.aspect).order_by("-pk"),
            ScoreSet(project=run.project, evaluator=row, aspect=fit.aspect),
        ]
        ScoreSet.objects.filter(pk__in=[other.pk for other in others if other.pk]).delete()
        first.signature, first.short_signature, first.references, first.run = fit.signature, fit.short, "", run
        first.save()
        Score.objects.filter(score_set=first).delete()
        insert_rows(Score, COLUMNS, (score_row(first, score) for score in fit.scores))
        result.append(first)
    return result
