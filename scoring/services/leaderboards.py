"""Compute leaderboards and store them until the data change. Small ones are computed in the request, large ones in a
run while the page shows the last table with its age; outdated ones before an export."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import ReferenceSet
from annotation.models.data import ORIGINAL
from annotation.selectors.filters import get_active_filter, make_filter_signature
from evalapp import __version__
from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import BadInput, EvalappError
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run, queue_has_worker
from evalapp.side_figures import collect_failures, note_failures, side_figure
from scoring.boards.base import Progress, Query
from scoring.boards.registry import get_board

from ..models import Evaluator, Leaderboard, ScoreSet
from ..selectors import leaderboards as tables
from ..selectors.aspects import find_campaign
from ..selectors.exports import list_exported_queries, read_stored_query
from ..selectors.games import find_judge, games_under_way, how_to_play, is_old, latest_games
from ..selectors.inputs import get_reference_set
from ..selectors.judge_split import LOOKED, iterate_looks
from ..selectors.staleness import with_staleness

#: Maximum number of judgements or scores to read in a request (about half a second).
MAX_ROWS_IN_REQUEST = 20_000
#: Maximum number of judgements for rater statistics and agreement in a request (about 0.75 s: variance components of
#: incomplete ratings are fitted again for each jackknife replicate).
MAX_JUDGED_IN_REQUEST = 3_000
#: Maximum of ratings times k (k + 10) / 2 for k evaluators, which are tested pairwise, in a request: half a second of
#: an idle core, two seconds under load.
MAX_CORRELATED_IN_REQUEST = 120_000
#: Maximum number of systems whose games are simulated in a request (about two seconds).
MAX_GLICKO_IN_REQUEST = 3
#: Number of tables renewed after scoring: the most recently computed.
MAX_RENEWED = 5
#: Kinds of run that change scores.
SCORING = ("score", "refit", "train", "combine")
#: Tables without human judgements.
_WITHOUT_PEOPLE = ("matrix",)


@dataclass(frozen=True)
class Answer:
    """The table for a page, and the run that computes a new one.

    `is_current`: `table` is the requested one. `is_old`: data have changed since, but only a user starts a new run.
    """

    table: dict[str, Any] | None
    leaderboard: Leaderboard | None
    is_current: bool
    run: Run | None = None
    has_worker: bool = True
    is_old: bool = False


def compute_leaderboard(
    *, project: Project, query: Query, stamp: str = "", progress: Progress | None = None
) -> Leaderboard:
    """Compute and store the table. `progress(done, total)` is called by tables that take long."""
    if not _has_references(project, query):
        get_reference_set(project, query.reference_set)  # raises an error with the existing sets
    # Before reading, so that a change during the computation makes the table outdated.
    stamp = stamp or tables.compute_stamp(project, query)
    began = time.monotonic()
    used = get_active_filter(project, query.rater_filter) if query.rater_filter else None
    with collect_failures() as failed:
        computed = _compute(project, query, progress)
        with side_figure(_("Which scores are outdated")):
            computed = with_staleness(project, query, computed)
    table = {"project": project.slug, "lang": project.lang, **computed}
    if failed:
        table["failed"] = failed
    if used is not None:
        table["signature"] += make_filter_signature(used)
        table["filter"] = {"name": used.name, "raters": len(used.raters), "digest": used.digest, "reason": used.reason}
    table["signature"] += f"|v:{__version__}"
    row, _created = Leaderboard.objects.update_or_create(
        project=project,
        key=tables.make_key(query),
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
    """Whether the reference set of a query exists; otherwise the table would look as if nothing had been scored."""
    name = query.reference_set
    if name in ("", ORIGINAL):
        return True
    scored = ScoreSet.objects.filter(project=project, references=name)
    return scored.exists() or ReferenceSet.objects.filter(project=project, name=name).exists()


def _compute(project: Project, query: Query, progress: Progress | None) -> dict[str, Any]:
    # Imports numpy, a tenth of the starting time of the web process.
    from scoring.boards.data.project import ProjectData

    def get_table(other: Query) -> dict[str, Any]:
        table: dict[str, Any] = get_leaderboard(project=project, query=other).table
        note_failures(table.get("failed", ()))
        return table

    return get_board(query.kind).compute(ProjectData(project, get_table), query, progress)


def get_leaderboard(*, project: Project, query: Query) -> Leaderboard:
    """Return the current table, computed now if needed: for commands, and small tables of the API."""
    if query.plays_games:
        answer = _answer_games(project, query)
        if answer.leaderboard is None:
            text = _("%(name)s is comparing these systems in run %(run)s. Try again when it has ended.")
            raise BadInput(text % {"name": query.by, "run": answer.run.pk if answer.run else "-"})
        return answer.leaderboard
    stamp = tables.compute_stamp(project, query)
    stored = tables.find_leaderboard(project, query)
    _check_names(project, query)
    if stored is not None and tables.is_current(stored, stamp):
        return stored
    return compute_leaderboard(project=project, query=query, stamp=stamp)


def answer_leaderboard(*, project: Project, query: Query, user: Any = None) -> Answer:
    """Return the table for a page; a large outdated one with the run that computes it. A comparison of judges with
    people counts as a look at their test part."""
    answer = _answer_games(project, query) if query.plays_games else _answer(project, query, user)
    if answer.table is not None:
        record_table_looks(project=project, user=user, table=answer.table)
    return answer


def record_table_looks(*, project: Project, user: Any = None, table: Mapping[str, Any]) -> None:
    """Record that a table compared judges with people in all groups: once for each kind of table, aspect and signature
    of a judge, because the same table tells nothing new."""
    shown = _find_signatures(table)
    if not shown or table["kind"] in _WITHOUT_PEOPLE:
        return
    judges = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.JUDGE, slug__in=shown)
    wanted = {
        slug: {"table": table["kind"], "aspect": table.get("aspect", ""), "signature": shown[slug]}
        for slug in judges.values_list("slug", flat=True)
    }
    known = [(look.evaluator, look.figures) for look in iterate_looks(project, list(wanted))] if wanted else []
    for slug, figures in wanted.items():
        if (slug, figures) not in known:
            audit.record(verb=LOOKED, project=project, actor=user, object=slug, figures=figures)


def _find_signatures(table: Mapping[str, Any]) -> dict[str, str]:
    """Return the signatures of the evaluators that may be judges."""
    if table.get("assist"):
        return {table["assist"]: table["evaluator"]["signature"]}
    return {
        row["evaluator"]: row.get("signature", "")
        for row in table["rows"]
        if "evaluator" in row and row.get("kind", Evaluator.Kind.JUDGE) == Evaluator.Kind.JUDGE
    }


def _answer(project: Project, query: Query, user: Any) -> Answer:
    stamp = tables.compute_stamp(project, query)
    stored = tables.find_leaderboard(project, query)
    _check_names(project, query)
    if stored is not None and tables.is_current(stored, stamp):
        return Answer(stored.table, stored, True)
    if not is_large(project, query):
        row = compute_leaderboard(project=project, query=query, stamp=stamp)
        return Answer(row.table, row, True)
    run = _queue(project, query, stamp, user)
    return Answer(stored.table if stored else None, stored, False, run, queue_has_worker(run.queue))


def _answer_games(project: Project, query: Any) -> Answer:
    """Return the newest result of games, and the active run. Games take minutes, so only users start them."""
    judge = find_judge(project, query.by)
    done, run = latest_games(project, judge, query), games_under_way(project, judge, query)
    if done is not None and done.result is not None:
        # Not saved: the table is in the result of the run.
        row = Leaderboard(
            project=project, kind=query.kind, params=query.params, stamp=f"games:{done.pk}",
            table=done.result["table"], computed_at=done.finished_at or done.created_at,
        )  # fmt: skip
        return Answer(row.table, row, True, run, is_old=is_old(project, row.table))
    if run is None:
        raise BadInput(how_to_play(project, judge, query))
    return Answer(None, None, False, run, queue_has_worker(run.queue))


def _check_names(project: Project, query: Query) -> None:
    """Check that filter and campaign exist: stored tables of a withdrawn filter must not be shown."""
    if query.rater_filter:
        get_active_filter(project, query.rater_filter)
    find_campaign(project, query.campaign_slug)


def note_reading(*, project: Project, user: Any) -> None:
    """Remember that the user has seen the table of evaluators, a first step of the project."""
    if tables.has_read(user, project):
        return
    with transaction.atomic():
        row = User.objects.select_for_update().get(pk=user.pk)
        row.preferences = {**row.preferences, tables.READ: [*row.preferences.get(tables.READ, ()), project.pk]}
        row.save(update_fields=["preferences"])


def renew_leaderboards(*, project: Project, run: Run | None = None) -> list[Run]:
    """Queue the recently used large tables after scoring in `run`, unless other runs still change scores."""
    busy = Run.objects.filter(project=project, kind__in=SCORING, state__in=Run.ACTIVE)
    if busy.exclude(pk=run.pk if run else None).exists():
        return []
    stamp = tables.compute_stamp(project)
    queued: list[Run] = []
    outdated = Leaderboard.objects.filter(project=project).exclude(stamp=stamp).order_by("-computed_at", "-pk")
    for row in outdated.only("kind", "params", "key")[: 4 * MAX_RENEWED]:
        query_class = get_board(row.kind).query
        if set(row.params) != set(query_class.names()):
            continue  # a table of an older version
        query = query_class(**row.params)
        if (
            tables.make_key(query) == row.key
            and query.reads_scores
            and all(tables.may_be_shown(project, [query]))
            and not tables.unknown_evaluators(project, [*query.chosen, *filter(None, [query.scored_by])])[0]
            and _has_references(project, query)
            and is_large(project, query)
        ):
            queued.append(_queue(project, query, stamp))
        if len(queued) == MAX_RENEWED:
            break
    return queued


def _queue(project: Project, query: Query, stamp: str, user: Any = None) -> Run:
    params = {"board": str(query.kind), "query": query.params, "stamp": stamp}
    title = gettext_noop("Leaderboard of %(kind)s") % {"kind": query.kind}
    return enqueue_run(kind="rank", project=project, user=user, params=params, title=title)


def is_large(project: Project, query: Query) -> bool:
    """Whether the table takes too long to compute in a request."""
    from scoring.boards.data.project import ProjectSize

    def is_stored(other: Query) -> bool:
        row = tables.find_leaderboard(project, other)
        return row is not None and tables.is_current(row, tables.compute_stamp(project, other))

    size = ProjectSize(
        project, rows=MAX_ROWS_IN_REQUEST, judged=MAX_JUDGED_IN_REQUEST, correlated=MAX_CORRELATED_IN_REQUEST,
        systems=MAX_GLICKO_IN_REQUEST, is_stored=is_stored,
    )  # fmt: skip
    return query.is_large(size)


def refresh_tables(*, project: Project, tick: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Compute outdated stored tables, and the usual tables if they are missing.

    A table that can no longer be computed (its filter was withdrawn, its evaluator deleted) is not exported.
    """
    stored = [
        query for row in Leaderboard.objects.filter(project=project).order_by("pk") if (query := read_stored_query(row))
    ]
    queries = list(dict.fromkeys([*stored, *list_exported_queries(project)]))
    for done, query in enumerate(queries):
        tick(done, len(queries))
        with side_figure(_("A table of %(kind)s") % {"kind": query.kind}), suppress(EvalappError):
            get_leaderboard(project=project, query=query)
