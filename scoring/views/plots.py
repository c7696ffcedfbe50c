"""Plots as separate SVG images, so that pages need no inline script or style; PDF for papers."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.utils.translation import get_language, gettext_noop
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, EvalappError, NotThere
from evalapp.common.pages import project_page
from evalapp.common.selectors import find_run
from evalapp.plot_style import HALF, NARROW, WIDE
from evalapp.side_figures import collect_failures, side_figure
from scoring.boards.agreement.columns import plan_growth
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.base import Query
from scoring.boards.choices import PEOPLE
from scoring.boards.metrics import columns as metrics_columns
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.registry import get_board
from scoring.boards.render.study import plan_picture as plan_study
from scoring.plots import drawing as plots

from ..selectors import steps
from ..selectors.aspects import choose_judged_way, list_judged_ways
from ..selectors.chosen_sets import get_set
from ..selectors.leaderboards import compute_stamp, find_leaderboard, parse_query, unknown_evaluators
from ..selectors.reports import CURVES
from ..selectors.snapshots import get_snapshot
from ..services.leaderboards import answer_leaderboard
from .boards import answer_or_reason, get_plotted_set, has_figures
from .evaluators import plan_distribution
from .references import plan_curves
from .snapshots import plan_snapshot
from .steps import draw_steps, make_panel_query
from .studies import find_study

KEEP_SECONDS = 24 * 3600
FAILED = (
    gettext_noop("This plot could not be drawn because of an internal error."),
    gettext_noop("Reload the page to try again. The server log has the details."),
)
TYPES = {"svg": "image/svg+xml; charset=utf-8", "pdf": "application/pdf"}


@project_page(GET="read")
def board_svg(request: HttpRequest, project: Project, kind: str, ending: str = "svg") -> HttpResponse:
    """The plot of a leaderboard."""
    query = parse_query(get_board(kind).query, request.GET, project)
    key = [compute_stamp(project), kind, query]
    if query.plays_games:
        # Games on the same data may have been replayed with other items or another evaluator of the same name.
        answer = answer_leaderboard(project=project, query=query, user=request.user)
        key = ["games", answer.leaderboard.stamp if answer.leaderboard else "", query]

    def draw() -> plots.Plot:
        table = _get_table(project, query, request.user)
        picture: plots.Picture = get_board(kind).get_renderer("plan_picture")(table, query, project.name)
        return picture.draw(_get_theme(request, ending), _get_width(request, ending))

    return _send(request, key, draw, ending, is_current=_make_check(project, query))


@project_page(GET="read")
def snapshot_svg(request: HttpRequest, project: Project, name: str, ending: str = "svg") -> HttpResponse:
    """The plot of a snapshot."""
    row = get_snapshot(project, name)
    picture = plan_snapshot(project, row)
    if picture is None:
        raise NotThere(_("There is nothing to plot."))
    key = ["snapshot", row.pk, row.created_at]
    return _send(request, key, lambda: picture.draw(_get_theme(request, ending), _get_width(request, ending)), ending)


@project_page(GET="read")
def growth_svg(request: HttpRequest, project: Project, ending: str = "svg") -> HttpResponse:
    """Reliability of the mean rating by number of ratings."""
    query = parse_query(AgreementQuery, request.GET, project)
    way = choose_judged_way(project, query, list_judged_ways(project))
    query = replace(query, aspect=way.aspect.name, judged=way.judged)

    def draw() -> plots.Plot:
        picture = plan_growth(_get_table(project, query, request.user))
        if picture is None:
            raise NotThere(_("There is nothing to plot yet."))
        return picture.draw(_get_theme(request, ending), _get_width(request, ending, HALF))

    key = [compute_stamp(project), "growth", query]
    return _send(request, key, draw, ending, is_current=_make_check(project, query))


@project_page(GET="read")
def scatter_svg(request: HttpRequest, project: Project, evaluator: str, ending: str = "svg") -> HttpResponse:
    query = parse_query(EvaluatorsQuery, request.GET, project)
    score_set = get_plotted_set(project, query, evaluator)

    def draw() -> plots.Plot:
        from ..selectors.meta_evaluation import load_points

        compared = query.people != "ratings"
        table = _get_table(project, query, request.user) if compared else None
        points = load_points(project, query, score_set, table)
        table = table or answer_or_reason(project, query, request.user)[0].table
        row = next((row for row in (table or {"rows": []})["rows"] if row["score_set"] == score_set.pk), None)
        description = _("%(n)d outputs, %(drawn)d drawn: scores of %(evaluator)s and human scores.")
        if query.level == "system":
            description = _("%(n)d systems, %(drawn)d drawn: scores of %(evaluator)s and human scores.")
        counts = {"n": len(points), "drawn": min(len(points), plots.MAX_POINTS), "evaluator": evaluator}
        scores = _(PEOPLE[query.people]) if compared else query.ratings
        return plots.draw_scatter(
            points,
            title=_("%(evaluator)s and human scores") % {"evaluator": evaluator},
            description=description % counts,
            axes=(evaluator, _("human scores (%(scores)s)") % {"scores": scores}),
            theme=_get_theme(request, ending),
            width=_get_width(request, ending),
            note=metrics_columns.describe_scatter(row, query) if row else "",
        )

    key = [compute_stamp(project), "scatter", query, score_set.pk, score_set.scored_at]
    return _send(request, key, draw, ending, is_current=_make_check(project, query))


@project_page(GET="read")
def distribution_svg(request: HttpRequest, project: Project, evaluator: str, ending: str = "svg") -> HttpResponse:
    score_set = get_set(project, evaluator, request.GET.get("set", ""))
    if not any(row["n"] for row in score_set.summary):
        raise NotThere(_("%(evaluator)s has no defined scores to plot.") % {"evaluator": evaluator})

    def draw() -> plots.Plot:
        return plan_distribution(score_set).draw(_get_theme(request, ending), _get_width(request, ending))

    return _send(request, ["distribution", score_set.pk, score_set.scored_at], draw, ending)


@project_page(GET="read")
def curves_svg(request: HttpRequest, project: Project, pk: int, panel: str, ending: str = "svg") -> HttpResponse:
    """A panel of the reliability curves of a run."""
    run = find_run(user=request.user, pk=pk, slug=project.slug)
    if run.kind != CURVES or run.result is None:
        raise BadInput(_("Run %(run)d has no curves.") % {"run": pk})
    result = run.result["panels"].get(panel)
    if not result or not result["lines"]:
        raise NotThere(_("There is no such curve."))

    def draw() -> plots.Plot:
        return plan_curves(panel, result).draw(_get_theme(request, ending), _get_width(request, ending))

    return _send(request, ["curves", pk, panel], draw, ending)


@project_page(GET="read")
def study_svg(request: HttpRequest, project: Project, pk: int, ending: str = "svg") -> HttpResponse:
    """A column of the tables of a study."""
    run = find_study(request, project, pk)
    column = request.GET.get("column", "")
    picture = plan_study(run.result, column) if run.result else None
    if picture is None:
        raise NotThere(_("This study has no figures to plot."))
    key = ["study", pk, str(run.finished_at), column]
    return _send(request, key, lambda: picture.draw(_get_theme(request, ending), _get_width(request, ending)), ending)


@project_page(GET="read")
def steps_svg(request: HttpRequest, project: Project, panel: str, ending: str = "svg") -> HttpResponse:
    """Human scores or scores of an evaluator by training step."""
    if panel != steps.PEOPLE and unknown_evaluators(project, [panel])[0]:
        raise NotThere(_("There is no evaluator “%(name)s”.") % {"name": panel})
    asked = sorted((name, value) for name, value in request.GET.items() if name not in ("v", "theme", "narrow"))
    key = [compute_stamp(project), "steps", panel, asked]

    def draw() -> Any:
        return draw_steps(request, project, panel, _get_theme(request, ending), _get_width(request, ending, HALF))

    return _send(
        request, key, draw, ending, is_current=_make_check(project, make_panel_query(project, request.GET, panel))
    )


def _get_table(project: Project, query: Any, user: Any) -> dict[str, Any]:
    answer, reason = answer_or_reason(project, query, user)
    if answer.table is None or not has_figures(answer.table):
        raise NotThere(reason or _("There is nothing to plot yet."))
    return answer.table


def _get_theme(request: HttpRequest, ending: str = "svg") -> plots.Theme:
    return "dark" if request.GET.get("theme") == "dark" and ending == "svg" else "light"


def _get_width(request: HttpRequest, ending: str = "svg", wide: int = WIDE) -> int:
    return NARROW if request.GET.get("narrow") and ending == "svg" else wide


def _make_check(project: Any, query: Query) -> Callable[[], bool]:
    """Return a check whether the plotted table is complete and current. Large tables are plotted from the last version
    until a run has recomputed them."""

    def is_current() -> bool:
        stored = find_leaderboard(project, query)
        return stored is None or (stored.stamp == compute_stamp(project, query) and not stored.table.get("failed"))

    return is_current


def _render_failure(theme: plots.Theme, ending: str) -> HttpResponse:
    """Return an image with an error message, or text instead of a PDF."""
    if ending == "svg":
        text, kind = plots.write_message(*map(_, FAILED), theme=theme), TYPES["svg"]
    else:
        text, kind = " ".join(map(_, FAILED)) + "\n", "text/plain; charset=utf-8"
    return HttpResponse(text, content_type=kind, status=500)


def _send(
    request: HttpRequest,
    key: list[Any],
    draw: Callable[[], plots.Plot],
    ending: str = "svg",
    *,
    is_current: Callable[[], bool] = lambda: True,
) -> HttpResponse:
    """Return the plot, cached by version of the data unless the table is outdated. Browsers cache it as long as the
    page refers to the same version."""
    look = [plots.LOOK, get_language(), _get_theme(request, ending), _get_width(request, ending), ending]
    digest = hashlib.sha256(repr([*look, *key]).encode()).hexdigest()
    plot = cache.get(f"plot:{digest}")
    lasting = plot is not None or is_current()
    if plot is None:
        with collect_failures() as failed, side_figure(_("The plot"), expected=(EvalappError,)):
            drawing = draw()
            plot = drawing.as_svg() if ending == "svg" else drawing.as_pdf()
        if plot is None:
            return _render_failure(_get_theme(request, ending), ending)
        if lasting and not failed:
            cache.set(f"plot:{digest}", plot, KEEP_SECONDS)
    response = HttpResponse(plot, content_type=TYPES[ending])
    if ending == "pdf":
        name = request.path.rstrip("/").rsplit("/", 2)
        response.headers["Content-Disposition"] = f'attachment; filename="{name[-2]}-{name[-1]}"'
    response.headers["Cache-Control"] = (
        "private, max-age=3600" if lasting and request.GET.get("v") else "private, no-cache"
    )
    return response
