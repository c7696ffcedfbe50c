"""Taking away what an upload brought into this room: scores with their sets and evaluators, and tables. What was scored
or computed here since stays; whether anything rests on the upload was asked before."""

from __future__ import annotations

from django.db.models import Count

from annotation.models import Upload, UploadChange

from ..models import Evaluator, Leaderboard, Score, ScoreSet
from ..selectors.columns import get_columns_file
from ..selectors.score_sets import SCORES, TABLES, brought_by
from ..selectors.summaries import summarise_scores
from .scores import finish_score_set


def take_back_scores(*, upload: Upload) -> dict[str, int]:
    """How many scores, sets and tables went. Call it inside the transaction of the undo."""
    scores = sum(rows.delete()[0] for _, rows in brought_by(upload))
    sets = sum(_settle(change) for change in UploadChange.objects.filter(upload=upload, table=SCORES).order_by("-pk"))
    rows = UploadChange.objects.filter(upload=upload, table=TABLES).values("row")
    # One that was computed here since has a stamp, and is looked at.
    tables, _ = Leaderboard.objects.filter(project=upload.project_id, pk__in=rows, stamp="").delete()
    return {name: count for name, count in (("scores", scores), ("score sets", sets), ("tables", tables)) if count}


def _settle(change: UploadChange) -> bool:
    """The set goes when the upload made it, nothing else is in it and nothing was scored into it here; the evaluator
    goes with its last set in the same way. Else the set is counted anew."""
    found = ScoreSet.objects.filter(pk=change.row).select_related("evaluator").first()
    if found is None:
        return False
    if change.before["made"] and found.run_id is None and not Score.objects.filter(score_set=found).exists():
        found.delete()
        rows = Evaluator.objects.filter(pk=found.evaluator_id, run=None, folder="").annotate(n=Count("score_sets"))
        if change.before["evaluator"] and rows.filter(n=0).exists():
            found.evaluator.delete()
        return True
    if found.scored_at is not None:
        # Its columns go: the moment stays, and as many other scores may follow, for which they would be taken.
        if (columns := get_columns_file(found)) is not None:
            columns.unlink(missing_ok=True)
        finish_score_set(
            score_set=found, data_hash=found.data_hash, systems=found.systems, summary=summarise_scores(found),
            scored_at=found.scored_at,
        )  # fmt: skip
    return False
