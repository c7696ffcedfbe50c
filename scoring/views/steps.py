"""The page of checkpoints: human and metric scores by training step, and the report on model selection."""

from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import BadInput, EvalappError
from evalapp.common.pages import page, project_page
from evalapp.plot_style import HALF
from evalapp.side_figures import side_value
from scoring.boards.render.page import Column, Grid, arrange
from scoring.boards.systems.query import SystemsQuery
from scoring.forms.boards import list_aspects
from scoring.forms.fields import list_reference_sets
from scoring.plots import drawing

from ..selectors.leaderboards import compute_stamp, parse_query
from ..selectors.reports import SELECTION, group_by_kind, has_choices
from ..selectors.runs import list_active_runs, list_finished_runs
from ..selectors.steps import MOST, PEOPLE, Best, best_steps, choose_evaluators, has_steps, make_lines
from ..services.leaderboards import Answer, answer_leaderboard
from ..services.reports import RUNS, SelectionOptions, start_selection
from .starting import open_run


def make_panel_query(project: Project, given: Any, panel: str) -> SystemsQuery:
    """Return the query of the table of systems behind a panel."""
    names = ("aspect", "ratings", "filter", "references")
    asked = {name: given.get(name, "") for name in names}
    asked |= {"method": "mean"} if panel == PEOPLE else {"by": panel}
    query: SystemsQuery = parse_query(SystemsQuery, asked, project)
    return query


def _answer(project: Project, given: Any, panel: str, user: Any) -> tuple[Answer, str]:
    try:
        return answer_leaderboard(project=project, query=make_panel_query(project, given, panel), user=user), ""
    except BadInput as error:
        return Answer(None, None, True), error.detail


@project_page(GET="read")
def steps(request: HttpRequest, project: Project) -> HttpResponse:
    given = request.GET
    references = given.get("references") or ORIGINAL
    chosen, known = choose_evaluators(project, given.getlist("by"), references)
    panels: list[dict[str, Any]] = []
    under_way = []
    for name in [PEOPLE, *chosen]:
        answer, reason = _answer(project, given, name, request.user)
        lines = make_lines(answer.table) if answer.table else []
        picture = drawing.Picture(
            partial(drawing.size_lines, len(lines)), drawing.draw_lines, describe_steps(lines), HALF
        )
        panels.append({"name": name, "lines": lines, "reason": reason, "table": answer.table, "picture": picture})
        if not answer.is_current:
            under_way.append(answer)
    people = panels[0]["table"]
    shown = {panel["name"]: panel["lines"] for panel in panels}
    tail = {name: given[name] for name in ("aspect", "ratings", "filter", "references") if given.get(name)}
    best: list[Best] = side_value(_("The best steps"), lambda: best_steps(shown), [])
    context = {
        "project": project,
        "panels": panels,
        "grid": _arrange_best(best, request) if best else None,
        "answer": under_way[0] if under_way else None,
        "aspects": list_aspects(project, rated=True),
        "aspect": people["aspect"] if people else given.get("aspect", ""),
        "reference_sets": list_reference_sets(project),
        "references": references,
        "known": known,
        "chosen": chosen,
        "most": MOST,
        "there_are": any(panel["lines"] for panel in panels) or has_steps(project) or has_choices(project),
        "plot": urlencode({**tail, "v": compute_stamp(project)[:12]}),
        **_choices(project, request.user),
    }
    return page(request, "scoring/systems/steps.html", context, fragment="board")


def _arrange_best(rows: list[Best], request: HttpRequest) -> Grid:
    """Return the table of the best steps."""
    columns = [
        Column("system", _("System"), lambda row: row.system, is_number=False),
        Column("panel", _("Chosen by"), lambda row: row.panel, is_number=False),
        Column("step", _("Step"), lambda row: row.step, is_ascending=True),
        Column("value", _("Its value"), lambda row: row.value),
        Column("people", _("Human rating"), lambda row: row.people and row.people["value"]),
    ]
    return arrange(columns, rows, dict(request.GET.lists()), default="system")


def _choices(project: Project, user: Any) -> dict[str, Any]:
    """Return the last selection report, and whether another can be requested."""
    run = list_finished_runs(project, SELECTION).first()
    return {
        "choices": None if run is None else {**run.result, "run": run, "tables": group_by_kind(run.result)},
        "choosing": list(list_active_runs(project, SELECTION)),
        "parts": RUNS,
        "may_choose": can(user=user, project=project, need="write") and has_choices(project),
    }


@project_page(POST="write")
def choose(request: HttpRequest, project: Project) -> HttpResponse:
    """Queue a selection report; the page of checkpoints shows it when it is finished."""
    given = request.POST
    options = SelectionOptions(
        given.get("aspect", ""), given.getlist("by"), references=given.get("references") or ORIGINAL
    )
    try:
        run = start_selection(project=project, user=request.user, options=options)
    except EvalappError as error:
        messages.error(request, error.detail)
        return redirect("scoring:steps", project.slug)
    return open_run(request, run)


def draw_steps(request: HttpRequest, project: Project, panel: str, theme: Any, width: int) -> Any:
    """Return the chart of a panel. Raises `BadInput` if there is nothing to plot."""
    answer, reason = _answer(project, request.GET, panel, request.user)
    lines = make_lines(answer.table) if answer.table else []
    if not lines:
        raise BadInput(reason or _("No system has scored or judged outputs with training steps."))
    aspect = answer.table["aspect"] if answer.table else ""
    axis = _("human scores, %(aspect)s, 95 %%") % {"aspect": aspect} if panel == PEOPLE else f"{panel}, 95 %"
    return drawing.draw_lines(
        lines,
        title=_("%(panel)s by training step") % {"panel": panel.capitalize()},
        description=describe_steps(lines),
        axes=(_("step"), axis),
        theme=theme,
        width=width,
    )


def describe_steps(lines: list[dict[str, Any]]) -> str:
    """Return the first and the last value of each line."""
    change = _("%(name)s: %(first).3f at step %(start)s, %(last).3f at step %(end)s")
    ends = [(line["name"], line["points"][0], line["points"][-1]) for line in lines]
    return "; ".join(
        change % {"name": name, "first": a["value"], "start": a["x"], "last": b["value"], "end": b["x"]}
        for name, a, b in ends
    )
