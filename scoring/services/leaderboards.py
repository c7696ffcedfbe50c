"""Computing leaderboards and keeping them until the data change. Small ones are computed in the request, large ones
in a run while the last table stays on the page with its age."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from annotation.models import Comparison, Rating, ReferenceSet, System
from annotation.models.data import ORIGINAL
from annotation.selectors.filters import filter_signature, get_active_filter
from evalapp import __version__
from evalapp.accounts.models import Project, User
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run, queue_has_worker
from evalapp.side_figures import collect_failures, note_failures, side_figure

from ..models import Leaderboard, Score, ScoreSet
from ..selectors.aspects import choose_aspect, find_campaign
from ..selectors.compared import compared_sets
from ..selectors.games import find_judge, games_under_way, how_to_play, is_old, latest_games, plays_games
from ..selectors.inputs import get_reference_set
from ..selectors.leaderboards import (
    BY_COMPARISONS,
    READ,
    SHAPES,
    AgreementQuery,
    AspectsQuery,
    EnhancedQuery,
    EvaluatorsQuery,
    MatrixQuery,
    PairsQuery,
    Query,
    SlicesQuery,
    SystemsQuery,
    chosen_evaluators,
    find_leaderboard,
    has_read,
    key_of,
    may_be_shown,
    reads_scores,
    stamp_of,
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
#: Ranks are sorted anew in every draw of a test, which takes so many times as long as sums.
RANKS_COST = 5
#: A figure with its interval beside the share of one evaluator in a table whose evaluators are tested.
FIGURE_COST = 4
#: Systems whose games a page may simulate in a request (about two seconds).
MAX_GLICKO_IN_REQUEST = 3
#: Tables of single aspects that a page may compute in a request.
MOST_ASPECTS_IN_REQUEST = 4
#: Tables that are renewed after scoring, those computed last.
MOST_RENEWED = 5
#: What changes scores while it is under way.
SCORING = ("score", "train", "combine")


Progress = Callable[[int, int], None]


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
        get_reference_set(project, getattr(query, "references", ""))  # says which there are
    stamp = stamp or stamp_of(project, query)
    began = time.monotonic()
    used = get_active_filter(project, filter_of(query)) if filter_of(query) else None
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
        key=key_of(query),
        defaults={
            "kind": query.kind,
            "params": asdict(query),
            "stamp": stamp,
            "table": table,
            "computed_at": timezone.now(),
            "seconds": round(time.monotonic() - began, 3),
        },
    )
    return row


def _has_references(project: Project, query: Query) -> bool:
    """Whether the reference set of a query is there. One that is not has no scores, and a table without them would look
    as if nobody had made any."""
    name = "" if isinstance(query, EnhancedQuery) else getattr(query, "references", "")
    if name in ("", ORIGINAL):
        return True
    scored = ScoreSet.objects.filter(project=project, references=name)
    return scored.exists() or ReferenceSet.objects.filter(project=project, name=name).exists()


def filter_of(query: Query) -> str:
    """The named filter of raters; where nobody's judgements are asked for there is none."""
    return "" if isinstance(query, MatrixQuery) else query.filter


def _rank(project: Project, query: Query, progress: Progress | None) -> dict[str, Any]:
    # Imported by the first table: numpy is a tenth of the time in which the web process starts.
    if isinstance(query, SystemsQuery):
        from ..selectors.rankings import rank_systems

        return rank_systems(project, query)
    if isinstance(query, EnhancedQuery):
        from ..selectors.enhanced import rank_by_references

        return rank_by_references(project, query)
    if isinstance(query, SlicesQuery | MatrixQuery | AspectsQuery | PairsQuery):
        return _rank_further(project, query, progress)
    if isinstance(query, AgreementQuery):
        from ..selectors.agreement import tabulate_agreement

        return tabulate_agreement(project, query)
    from ..selectors.meta_evaluation import rank_evaluators

    return rank_evaluators(project, query, progress)


def _rank_further(
    project: Project, query: SlicesQuery | MatrixQuery | AspectsQuery | PairsQuery, progress: Progress | None
) -> dict[str, Any]:
    from ..selectors import evaluator_boards as boards

    if isinstance(query, PairsQuery):
        from ..selectors.meta_evaluation import tabulate_pairs

        return tabulate_pairs(project, query)

    if isinstance(query, SlicesQuery):
        return boards.rank_slices(project, query)
    if isinstance(query, MatrixQuery):
        return boards.tabulate_matrix(project, query)
    # The main tables, as far as they are kept; those that are computed here are kept for their own pages.
    queries, tables = boards.queries_by_aspect(project, query), []
    for number, one in enumerate(queries, 1):
        tables.append(get_leaderboard(project=project, query=one).table)
        note_failures(tables[-1].get("failed", ()))
        if progress is not None:
            progress(number, len(queries))
    return boards.tabulate_aspects(tables, query)


def get_leaderboard(*, project: Project, query: Query) -> Leaderboard:
    """The present table, computed here and now if it must be: for commands and the API's small tables."""
    if isinstance(query, SystemsQuery) and plays_games(query):
        answer = _answer_games(project, query)
        if answer.leaderboard is None:
            number = answer.run.pk if answer.run else "-"
            raise BadInput(f"{query.by} is just comparing these systems in run {number}. Look again when it has ended.")
        return answer.leaderboard
    stamp = stamp_of(project, query)
    kept = find_leaderboard(project, query)
    _check_names(project, query)
    if kept is not None and kept.is_current(stamp):
        return kept
    return compute_leaderboard(project=project, query=query, stamp=stamp)


def answer_leaderboard(*, project: Project, query: Query, user: Any = None) -> Answer:
    """The table for a page: at once where it is kept or small, else the last one and the run that computes anew."""
    if isinstance(query, SystemsQuery) and plays_games(query):
        return _answer_games(project, query)
    stamp = stamp_of(project, query)
    kept = find_leaderboard(project, query)
    _check_names(project, query)
    if kept is not None and kept.is_current(stamp):
        return Answer(kept.table, kept, True)
    if not is_large(project, query):
        row = compute_leaderboard(project=project, query=query, stamp=stamp)
        return Answer(row.table, row, True)
    run = _queue(project, query, stamp, user)
    return Answer(kept.table if kept else None, kept, False, run, queue_has_worker(run.queue))


def _answer_games(project: Project, query: SystemsQuery) -> Answer:
    """The newest result of games, and the run that is at another. Nobody but a person starts games: they take minutes,
    and new data make no result wrong that says what it is about."""
    judge = find_judge(project, query.by)
    done, run = latest_games(project, judge, query), games_under_way(project, judge, query)
    if done is not None and done.result is not None:
        # Never saved: the run itself keeps the table.
        row = Leaderboard(
            project=project, kind=query.kind, params=asdict(query), stamp=f"games:{done.pk}",
            table=done.result["table"], computed_at=done.finished_at or done.created_at,
        )  # fmt: skip
        return Answer(row.table, row, True, run, is_old=is_old(project, row.table))
    if run is None:
        raise BadInput(how_to_play(project, judge, query))
    return Answer(None, None, False, run, queue_has_worker(run.queue))


def _check_names(project: Project, query: Query) -> None:
    """A table that is kept is no way round the withdrawal of its filter, and a run would only fail where there is no
    such campaign."""
    if filter_of(query):
        get_active_filter(project, filter_of(query))
    find_campaign(project, getattr(query, "campaign", ""))


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
    stamp = stamp_of(project)
    queued: list[Run] = []
    kept = Leaderboard.objects.filter(project=project).exclude(stamp=stamp).order_by("-computed_at", "-pk")
    for row in kept.only("kind", "params", "key")[: 4 * MOST_RENEWED]:
        shape = SHAPES[row.kind]
        if set(row.params) != set(shape.__dataclass_fields__):
            continue  # a table of an older version; nobody asks for it
        query = shape(**row.params)
        wanted = key_of(query) == row.key and reads_scores(query) and all(may_be_shown(project, [query]))
        wanted = wanted and not unknown_evaluators(project, chosen_evaluators(query))[0]
        if wanted and _has_references(project, query) and is_large(project, query):
            queued.append(_queue(project, query, stamp))
        if len(queued) == MOST_RENEWED:
            break
    return queued


def _queue(project: Project, query: Query, stamp: str, user: Any = None) -> Run:
    params = {"board": str(query.kind), "query": asdict(query), "stamp": stamp}
    return enqueue_run(kind="rank", project=project, user=user, params=params, title=f"Leaderboard of {query.kind}")


def is_large(project: Project, query: Query, *, tables: int = 1) -> bool:
    """Whether computing would keep a person waiting; asks for one row beyond the limit, never for a count. `tables`
    such tables share what a request may take."""
    if isinstance(query, AgreementQuery):
        of = {"aspect__name": query.aspect} if query.aspect else {}
        compared = MAX_JUDGED_IN_REQUEST if query.aspect else MAX_ROWS_IN_REQUEST
        limits = ((Rating, MAX_JUDGED_IN_REQUEST), (Comparison, compared))
        return any(_has_more(rows.objects.filter(project=project, **of), limit) for rows, limit in limits)
    if isinstance(query, MatrixQuery):
        return _has_more(Score.objects.filter(score_set__project=project), MAX_CORRELATED_IN_REQUEST // FIGURE_COST)
    if isinstance(query, AspectsQuery):
        return _is_large_by_aspect(project, query)
    if isinstance(query, SystemsQuery) and query.by:
        return _has_more(Score.objects.filter(score_set__project=project), MAX_ROWS_IN_REQUEST)
    if isinstance(query, PairsQuery):
        return _has_more(Comparison.objects.filter(project=project), MAX_ROWS_IN_REQUEST // FIGURE_COST)
    method = query.people if isinstance(query, EvaluatorsQuery) else getattr(query, "method", "")
    if method not in ("", "mean", "ratings"):
        if method == "glicko2":
            # Games are simulated a hundred times over: the number of systems decides, hardly that of comparisons.
            return _has_more(System.objects.filter(project=project), MAX_GLICKO_IN_REQUEST)
        compared = choose_aspect(project, query.aspect, judged_by="comparisons")
        return _has_more(Comparison.objects.filter(aspect=compared), MAX_ROWS_IN_REQUEST)
    limit = MAX_ROWS_IN_REQUEST
    if isinstance(query, EvaluatorsQuery | SlicesQuery):
        n_sets = len(compared_sets(project, query)) or 1
        tested = isinstance(query, EvaluatorsQuery) and query.test != "none"
        cost = n_sets * (n_sets + 10) // 2 if tested else n_sets * FIGURE_COST
        slow = RANKS_COST if query.coefficient in ("spearman", "kendall") else 1
        limit = min(limit, MAX_CORRELATED_IN_REQUEST // (cost * slow * tables))
    if isinstance(query, EnhancedQuery):
        from ..selectors.enhanced import chosen_sets

        # Each cell is correlated once, and each pair of sets of one evaluator is resampled twice more.
        names = chosen_sets(project, query)
        cells = ScoreSet.objects.filter(project=project, references__in=names, scored_at__isnull=False)
        if chosen := chosen_evaluators(query):
            cells = cells.filter(evaluator__slug__in=chosen)
        n_cells = cells.count() or 1
        limit = min(limit, MAX_CORRELATED_IN_REQUEST // (FIGURE_COST * n_cells * max(1, len(names) - 1)))
    if isinstance(query, EvaluatorsQuery) and query.level == "dialogue":
        return _has_more(Rating.objects.filter(project=project, dialogue__isnull=False), limit)
    otherwise = BY_COMPARISONS if isinstance(query, EvaluatorsQuery) else ""
    rated = choose_aspect(project, query.aspect, judged_by="ratings", otherwise=otherwise)
    return _has_more(Rating.objects.filter(aspect=rated), limit)


def _is_large_by_aspect(project: Project, query: AspectsQuery) -> bool:
    """Whether the tables of all aspects that are not kept yet would keep a person waiting."""
    from ..selectors.evaluator_boards import queries_by_aspect

    stamp = stamp_of(project)
    missing = []
    for one in queries_by_aspect(project, query):
        kept = find_leaderboard(project, one)
        if kept is None or not kept.is_current(stamp):
            missing.append(one)
    if len(missing) > MOST_ASPECTS_IN_REQUEST:
        return True
    return any(is_large(project, one, tables=len(missing)) for one in missing)


def _has_more(rows: Any, limit: int) -> bool:
    return bool(rows.order_by().values_list("pk", flat=True)[limit : limit + 1])
