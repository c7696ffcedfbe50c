"""Computing leaderboards and keeping them until the data change. Small ones are computed in the request, large ones
in a run while the last table stays on the page with its age."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from annotation.models import ReferenceSet
from annotation.models.data import ORIGINAL
from annotation.selectors.filters import filter_signature, get_active_filter
from evalapp import __version__
from evalapp.accounts.models import Project, User
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run, queue_has_worker
from evalapp.side_figures import collect_failures, note_failures, side_figure
from scoring.boards.base import Progress, Query
from scoring.boards.registry import get_board

from ..models import Leaderboard, ScoreSet
from ..selectors.aspects import find_campaign
from ..selectors.games import find_judge, games_under_way, how_to_play, is_old, latest_games
from ..selectors.inputs import get_reference_set
from ..selectors.leaderboards import (
    READ,
    compute_stamp,
    find_leaderboard,
    has_read,
    make_key,
    may_be_shown,
    unknown_evaluators,
)
from ..selectors.staleness import with_staleness

#: Judgements or scores that a page may read in a request (about half a second).
MAX_ROWS_IN_REQUEST = 20_000
#: Judgements whose raters a page may report, or ratings whose agreement it may compute, in a request (about three
#: quarters of a second; variance components of incomplete ratings are fitted again for each part left out).
MAX_JUDGED_IN_REQUEST = 3_000
#: Ratings times k (k + 10) / 2, for k evaluators with intervals and each tested against each, that a page may compute
#: in a request: half a second of one core where nothing else runs, so that it answers in two beside other load.
MAX_CORRELATED_IN_REQUEST = 120_000
#: Systems whose games a page may simulate in a request (about two seconds).
MAX_GLICKO_IN_REQUEST = 3
#: Tables that are renewed after scoring, those computed last.
MOST_RENEWED = 5
#: What changes scores while it is under way.
SCORING = ("score", "train", "combine")


@dataclass(frozen=True)
class Answer:
    """What a page shows: a table or None, whether it is the one to show, and the run that is at another. `is_old`: data
    have changed since, and only a person asks for another."""

    table: dict[str, Any] | None
    leaderboard: Leaderboard | None
    is_current: bool
    run: Run | None = None
    has_worker: bool = True
    is_old: bool = False


def compute_leaderboard(
    *, project: Project, query: Query, stamp: str = "", progress: Progress | None = None
) -> Leaderboard:
    """Compute the table and keep it. The stamp is taken before reading, so that a change meanwhile makes it old.
    `progress` is told how many steps are done, of how many, by tables that take long."""
    if not _has_references(project, query):
        get_reference_set(project, query.reference_set)  # says which there are
    stamp = stamp or compute_stamp(project, query)
    began = time.monotonic()
    used = get_active_filter(project, query.rater_filter) if query.rater_filter else None
    with collect_failures() as failed:
        found = _rank(project, query, progress)
        with side_figure("Which scores are out of date"):
            found = with_staleness(project, query, found)
    table = {"project": project.slug, "lang": project.lang, **found}
    if failed:
        table["failed"] = failed
    if used is not None:
        table["signature"] += filter_signature(used)
        table["filter"] = {"name": used.name, "raters": len(used.raters), "digest": used.digest, "reason": used.reason}
    table["signature"] += f"|v:{__version__}"
    row, _ = Leaderboard.objects.update_or_create(
        project=project,
        key=make_key(query),
        defaults={
            "kind": query.kind,
            "params": query.params,
            "stamp": stamp,
            "table": table,
            "computed_at": timezone.now(),
            "seconds": round(time.monotonic() - began, 3),
        },
    )
    return row


def _has_references(project: Project, query: Query) -> bool:
    """Whether the reference set of a query exists. One that does not has no scores, and the table would look as if
    nothing had been scored."""
    name = query.reference_set
    if name in ("", ORIGINAL):
        return True
    scored = ScoreSet.objects.filter(project=project, references=name)
    return scored.exists() or ReferenceSet.objects.filter(project=project, name=name).exists()


def _rank(project: Project, query: Query, progress: Progress | None) -> dict[str, Any]:
    # Imported by the first table: numpy is a tenth of the time in which the web process starts.
    from scoring.boards.data.project import ProjectData

    def get_table(other: Query) -> dict[str, Any]:
        table: dict[str, Any] = get_leaderboard(project=project, query=other).table
        note_failures(table.get("failed", ()))
        return table

    return get_board(query.kind).compute(ProjectData(project, get_table), query, progress)


def get_leaderboard(*, project: Project, query: Query) -> Leaderboard:
    """The present table, computed here and now if it must be: for commands and the API's small tables."""
    if query.plays_games:
        answer = _answer_games(project, query)
        if answer.leaderboard is None:
            number = answer.run.pk if answer.run else "-"
            raise BadInput(f"{query.by} is just comparing these systems in run {number}. Look again when it has ended.")
        return answer.leaderboard
    stamp = compute_stamp(project, query)
    kept = find_leaderboard(project, query)
    _check_names(project, query)
    if kept is not None and kept.is_current(stamp):
        return kept
    return compute_leaderboard(project=project, query=query, stamp=stamp)


def answer_leaderboard(*, project: Project, query: Query, user: Any = None) -> Answer:
    """The table for a page: at once where it is kept or small, else the last one and the run that computes anew."""
    if query.plays_games:
        return _answer_games(project, query)
    stamp = compute_stamp(project, query)
    kept = find_leaderboard(project, query)
    _check_names(project, query)
    if kept is not None and kept.is_current(stamp):
        return Answer(kept.table, kept, True)
    if not is_large(project, query):
        row = compute_leaderboard(project=project, query=query, stamp=stamp)
        return Answer(row.table, row, True)
    run = _queue(project, query, stamp, user)
    return Answer(kept.table if kept else None, kept, False, run, queue_has_worker(run.queue))


def _answer_games(project: Project, query: Any) -> Answer:
    """The newest result of games, and the run that is at another. Nobody but a person starts games: they take minutes,
    and new data make no result wrong that says what it is about."""
    judge = find_judge(project, query.by)
    done, run = latest_games(project, judge, query), games_under_way(project, judge, query)
    if done is not None and done.result is not None:
        # Never saved: the run itself keeps the table.
        row = Leaderboard(
            project=project, kind=query.kind, params=query.params, stamp=f"games:{done.pk}",
            table=done.result["table"], computed_at=done.finished_at or done.created_at,
        )  # fmt: skip
        return Answer(row.table, row, True, run, is_old=is_old(project, row.table))
    if run is None:
        raise BadInput(how_to_play(project, judge, query))
    return Answer(None, None, False, run, queue_has_worker(run.queue))


def _check_names(project: Project, query: Query) -> None:
    """A table that is kept is no way round the withdrawal of its filter, and a run would only fail where there is no
    such campaign."""
    if query.rater_filter:
        get_active_filter(project, query.rater_filter)
    find_campaign(project, query.campaign_slug)


def note_reading(*, project: Project, user: Any) -> None:
    """This person has the table of evaluators before them; the first steps of the project need not name it again."""
    if has_read(user, project):
        return
    with transaction.atomic():
        row = User.objects.select_for_update().get(pk=user.pk)
        row.preferences = {**row.preferences, READ: [*row.preferences.get(READ, ()), project.pk]}
        row.save(update_fields=["preferences"])


def renew_leaderboards(*, project: Project, run: Run | None = None) -> list[Run]:
    """After scoring (in `run`): the tables looked at last that a page would not compute itself are queued, so that they
    stand when somebody comes. While more scores are under way nothing is; their end calls again."""
    busy = Run.objects.filter(project=project, kind__in=SCORING, state__in=Run.ACTIVE)
    if busy.exclude(pk=run.pk if run else None).exists():
        return []
    stamp = compute_stamp(project)
    queued: list[Run] = []
    kept = Leaderboard.objects.filter(project=project).exclude(stamp=stamp).order_by("-computed_at", "-pk")
    for row in kept.only("kind", "params", "key")[: 4 * MOST_RENEWED]:
        shape = get_board(row.kind).query
        if set(row.params) != set(shape.names()):
            continue  # a table of an older version; nobody asks for it
        query = shape(**row.params)
        wanted = make_key(query) == row.key and query.reads_scores and all(may_be_shown(project, [query]))
        wanted = wanted and not unknown_evaluators(project, query.chosen)[0]
        if wanted and _has_references(project, query) and is_large(project, query):
            queued.append(_queue(project, query, stamp))
        if len(queued) == MOST_RENEWED:
            break
    return queued


def _queue(project: Project, query: Query, stamp: str, user: Any = None) -> Run:
    params = {"board": str(query.kind), "query": query.params, "stamp": stamp}
    return enqueue_run(kind="rank", project=project, user=user, params=params, title=f"Leaderboard of {query.kind}")


def is_large(project: Project, query: Query) -> bool:
    """Whether computing would keep a reader waiting."""
    from scoring.boards.data.project import ProjectSize

    def is_stored(other: Query) -> bool:
        kept = find_leaderboard(project, other)
        return kept is not None and kept.is_current(compute_stamp(project, other))

    size = ProjectSize(
        project, rows=MAX_ROWS_IN_REQUEST, judged=MAX_JUDGED_IN_REQUEST, correlated=MAX_CORRELATED_IN_REQUEST,
        systems=MAX_GLICKO_IN_REQUEST, is_stored=is_stored,
    )  # fmt: skip
    return query.is_large(size)
