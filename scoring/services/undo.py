"""Remove what an upload imported: scores with their sets and evaluators, answers of judges, and leaderboards. Scores
computed in the project stay. Whether anything depends on the upload is checked before."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Count

from annotation.models import Upload, UploadChange
from annotation.services.bulk import update_rows

from ..models import Evaluator, Leaderboard, Score, ScoreSet
from ..selectors.columns import get_columns_file
from ..selectors.external import CHANGEABLE, hash_data
from ..selectors.judge_records import list_imported_answers
from ..selectors.score_sets import SCORES, TABLES, brought_by
from .scores import recount_score_set


def remove_imported_scores(*, upload: Upload) -> dict[str, int]:
    """Remove the scores and return the numbers of removed rows. Call it inside the transaction of the undo."""
    scores = sum(rows.delete()[0] for _change, rows in brought_by(upload))
    answers = sum(rows.delete()[0] for rows in list_imported_answers(upload))
    sets = sum(_remove_set(row) for row in UploadChange.objects.filter(upload=upload, table=SCORES).order_by("-pk"))
    rows = UploadChange.objects.filter(upload=upload, table=TABLES).values("row")
    # A table that was computed in the project since has a stamp.
    tables, _by_model = Leaderboard.objects.filter(project=upload.project_id, pk__in=rows, stamp="").delete()
    removed = {"scores": scores, "score sets": sets, "tables": tables, "answers": answers}
    return {name: count for name, count in removed.items() if count}


def _restore_replaced(score_set: ScoreSet, before: dict[str, Any]) -> None:
    """Restore the scores and values of systems that the upload replaced."""
    if not score_set.evaluator.is_external:
        return
    update_rows(Score, CHANGEABLE, [(*row, pk) for pk, *row in before.get("was", ())])
    score_set.systems = before.get("systems", score_set.systems)
    if before.get("scored_at"):
        score_set.scored_at = datetime.fromisoformat(before["scored_at"])
    score_set.data_hash = hash_data(score_set)


def _remove_set(change: UploadChange) -> bool:
    """Delete the set if the upload created it and it is empty, and likewise its evaluator; otherwise count it again."""
    score_set = ScoreSet.objects.filter(pk=change.row).select_related("evaluator").first()
    if score_set is None:
        return False
    if change.before["made"] and score_set.run_id is None and not Score.objects.filter(score_set=score_set).exists():
        score_set.delete()
        rows = Evaluator.objects.filter(pk=score_set.evaluator_id, run=None, folder="").annotate(n=Count("score_sets"))
        if change.before["evaluator"] and rows.filter(n=0).exists():
            score_set.evaluator.delete()
        return True
    _restore_replaced(score_set, change.before)
    if score_set.scored_at is not None:
        # The file of columns is named by time and count, so other scores could later match its name.
        if (columns := get_columns_file(score_set)) is not None:
            columns.unlink(missing_ok=True)
        recount_score_set(score_set=score_set)
    return False
