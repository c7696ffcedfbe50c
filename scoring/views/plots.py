"""Plots as images of their own, so that pages need no script and no inline style for them; for papers as PDF."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, EvalappError, NotThere
from evalapp.common.selectors import find_run
from evalapp.side_figures import collect_failures, side_figure
from scoring.boards.base import Query
from scoring.boards.choices import PEOPLE
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.registry import get_board
from scoring.boards.render.plot import draw_board
from scoring.boards.systems.query import SystemsQuery
from scoring.plots import drawing as plots

from ..selectors.leaderboards import find_leaderboard, parse_query, stamp_of
from ..selectors.reliability_curves import KIND as CURVES
from ..selectors.reliability_curves import PANELS
from ..services.leaderboards import answer_leaderboard
from .boards import answer_or_reason, get_plotted_set
from .evaluators import get_set
from .steps import draw_steps, query_of_panel

KEEP_SECONDS = 24 * 3600
FAILED = (
    "This plot could not be drawn because of an internal error.",
    "Reload the page to try again. The administrator finds the reason in the server's log.",
)
TYPES = {"svg": "image/svg+xml; charset=utf-8", "pdf": "application/pdf"}


@login_required
@require_GET
def systems_svg(request: HttpRequest, slug: str, ending: str = "svg") -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(SystemsQuery, request.GET, project)

    def draw() -> plots.Plot:
        return draw_board(_table(project, query, request.user), query, project.name, _theme(request, ending))

    key = [stamp_of(project), "systems", query]
    if query.plays_games:
        # The same data may have been played anew, with other items or another evaluator of that name.
        answer = answer_leaderboard(project=project, query=query, user=request.user)
        key = ["games", answer.leaderboard.stamp if answer.leaderboard else "", query]
    return _sent(request, key, draw, ending, is_current=_current(project, query))


@login_required
@require_GET
def evaluation_svg(request: HttpRequest, slug: str, ending: str = "svg") -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(EvaluatorsQuery, request.GET, project)

    def draw() -> plots.Plot:
        return draw_board(_table(project, query, request.user), query, project.name, _theme(request, ending))

    return _sent(request, [stamp_of(project), "evaluation", query], draw, ending, is_current=_current(project, query))


@login_required
@require_GET
def scatter_svg(request: HttpRequest, slug: str, evaluator: str, ending: str = "svg") -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(EvaluatorsQuery, request.GET, project)
    score_set = get_plotted_set(project, query, evaluator)

    def draw() -> plots.Plot:
        from ..selectors.meta_evaluation import load_points

        compared = query.people != "ratings"
        points = load_points(project, query, score_set, _table(project, query, request.user) if compared else None)
        what = "systems" if query.level == "system" else "outputs"
        drawn = min(len(points), plots.MAX_POINTS)
        description = f"{len(points)} {what}, {drawn} of them drawn: score of {evaluator} against people."
        return plots.draw_scatter(
            points,
            title=f"{evaluator} against people",
            description=description,
            axes=(evaluator, f"people ({PEOPLE[query.people] if compared else query.ratings})"),
            theme=_theme(request, ending),
        )

    key = [stamp_of(project), "scatter", query, score_set.pk, score_set.scored_at]
    return _sent(request, key, draw, ending, is_current=_current(project, query))


@login_required
@require_GET
def board_svg(request: HttpRequest, slug: str, kind: str, ending: str = "svg") -> HttpResponse:
    """A further table of evaluators as a heat map."""
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(get_board(kind).query, request.GET, project)
    key = [stamp_of(project), kind, query]

    def draw() -> Any:
        return draw_board(_further_table(project, query, request.user), query, project.name, _theme(request, ending))

    return _sent(request, key, draw, ending, is_current=_current(project, query))


@login_required
@require_GET
def distribution_svg(request: HttpRequest, slug: str, evaluator: str, ending: str = "svg") -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    score_set = get_set(project, evaluator, request.GET.get("set", ""))
    rows = [row for row in score_set.summary if row["n"]]
    if not rows:
        raise NotThere(f"{evaluator} has no defined score to be drawn.")

    def draw() -> plots.Plot:
        words = "; ".join(f"{row['label']}: median {row['p50']:.3g}" for row in rows)
        return plots.draw_distribution(
            rows,
            title=f"Scores of {evaluator} by system",
            description=words,
            axis=evaluator,
            theme=_theme(request, ending),
        )

    return _sent(request, ["distribution", score_set.pk, score_set.scored_at], draw, ending)


@login_required
@require_GET
def curves_svg(request: HttpRequest, slug: str, pk: int, panel: str) -> HttpResponse:
    """One panel of the reliability curves that a run computed."""
    project = get_project(user=request.user, slug=slug, need="read")
    run = find_run(user=request.user, pk=pk, slug=project.slug)
    if run.kind != CURVES or run.result is None:
        raise BadInput(f"Run {pk} has computed no curves.")
    found = run.result["panels"].get(panel)
    if not found or not found["lines"]:
        raise NotThere("There is no such curve.")

    def draw() -> plots.Plot:
        words = "; ".join(
            f"{line['name']}: from {line['points'][0]['value']:.3f} to {line['points'][-1]['value']:.3f}"
            for line in found["lines"]
        )
        return plots.draw_lines(
            found["lines"],
            title=PANELS.get(panel, panel),
            description=words,
            axes=(str(found["axes"][0]), f"{found['axes'][1]}, 95 %"),
            theme=_theme(request),
        )

    return _sent(request, ["curves", pk, panel], draw)


@login_required
@require_GET
def steps_svg(request: HttpRequest, slug: str, panel: str, ending: str = "svg") -> HttpResponse:
    """Checkpoints as people or one evaluator see them."""
    project = get_project(user=request.user, slug=slug, need="read")
    asked = sorted((name, value) for name, value in request.GET.items() if name not in ("v", "theme"))
    key = [stamp_of(project), "steps", panel, asked]

    def draw() -> Any:
        return draw_steps(request, project, panel, _theme(request, ending))

    return _sent(request, key, draw, ending, is_current=_current(project, query_of_panel(project, request.GET, panel)))


def _further_table(project: Any, query: Any, user: Any) -> dict[str, Any]:
    answer, reason = answer_or_reason(project, query, user)
    if answer.table is None or not answer.table["rows"]:
        raise NotThere(reason or "There is nothing to be drawn yet.")
    return answer.table


def _table(project: Any, query: Any, user: Any) -> dict[str, Any]:
    answer = answer_leaderboard(project=project, query=query, user=user)
    if answer.table is None or not any(row.get("value") or row.get("pearson") for row in answer.table["rows"]):
        raise NotThere("There is nothing to be drawn yet.")
    return answer.table


def _theme(request: HttpRequest, ending: str = "svg") -> plots.Theme:
    return "dark" if request.GET.get("theme") == "dark" and ending == "svg" else "light"


def _current(project: Any, query: Query) -> Callable[[], bool]:
    """Whether the table that is drawn is complete and of the present state, or is computed for it while somebody
    waits. Of a large one the last is shown until a run has computed it anew."""

    def found() -> bool:
        kept = find_leaderboard(project, query)
        return kept is None or (kept.stamp == stamp_of(project, query) and not kept.table.get("failed"))

    return found


def _failed(theme: plots.Theme, ending: str) -> HttpResponse:
    """The answer of a plot that failed: an image that says so on a page, text where a PDF was asked for."""
    if ending == "svg":
        text, kind = plots.write_message(*FAILED, theme=theme), TYPES["svg"]
    else:
        text, kind = " ".join(FAILED) + "\n", "text/plain; charset=utf-8"
    return HttpResponse(text, content_type=kind, status=500)


def _sent(
    request: HttpRequest,
    key: list[Any],
    draw: Callable[[], plots.Plot],
    ending: str = "svg",
    *,
    is_current: Callable[[], bool] = lambda: True,
) -> HttpResponse:
    """Drawn once for one state of the data, unless the table is of an earlier one; the browser keeps it as long as the
    page names the same state."""
    digest = hashlib.sha256(repr([*key, _theme(request, ending), ending]).encode()).hexdigest()
    found = cache.get(f"plot:{digest}")
    lasting = found is not None or is_current()
    if found is None:
        with collect_failures() as failed, side_figure("The plot", expected=(EvalappError,)):
            plot = draw()
            found = plot.as_svg() if ending == "svg" else plot.as_pdf()
        if found is None:
            return _failed(_theme(request, ending), ending)
        if lasting and not failed:
            cache.set(f"plot:{digest}", found, KEEP_SECONDS)
    response = HttpResponse(found, content_type=TYPES[ending])
    if ending == "pdf":
        name = request.path.rstrip("/").rsplit("/", 2)
        response.headers["Content-Disposition"] = f'attachment; filename="{name[-2]}-{name[-1]}"'
    response.headers["Cache-Control"] = (
        "private, max-age=3600" if lasting and request.GET.get("v") else "private, no-cache"
    )
    return response
