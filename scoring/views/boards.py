"""Pages of leaderboards, and their tables as CSV, JSON and LaTeX."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.pages import page, project_page
from evalapp.names import natural_key
from evalapp.side_figures import side_value
from scoring.boards.base import Query, Way
from scoring.boards.choices import ASSISTANT, ASSISTED, COEFFICIENTS, MOST_SETS
from scoring.boards.data.project import ProjectData
from scoring.boards.metrics.columns import describe_scatter
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.registry import get_board, list_boards
from scoring.boards.systems.query import SystemsQuery
from scoring.forms.boards import BoardForm, list_assistants
from scoring.forms.games import GamesForm
from scoring.plots.drawing import Picture, draw_scatter, size_scatter

from ..downloads import send_board
from ..models import ScoreSet
from ..selectors.assistant import find_fit
from ..selectors.games import METHOD, list_judges
from ..selectors.leaderboards import parse_query
from ..selectors.reports import has_choices
from ..services.leaderboards import Answer, answer_leaderboard, note_reading
from ..services.reports import start_games
from .starting import start_run


@project_page(GET="read")
def board(request: HttpRequest, project: Project, kind: str) -> HttpResponse:
    """The page of a leaderboard of evaluators."""
    context = build_context(
        request, project, parse_query(get_board(kind).query, read_params(request.GET, kind), project)
    )
    table, chosen = context["table"], request.GET.get("plot", "")
    rows = table["rows"] if table else []
    if kind == EvaluatorsQuery.kind:
        context["shown"] = shown = next((row for row in rows if row["evaluator"] == chosen and row["score_set"]), None)
        if shown:
            context["scatter"] = Picture(size_scatter, draw_scatter, describe_scatter(shown, context["query"]))
        if rows:
            note_reading(project=project, user=request.user)
    if kind == "enhanced":
        compared = [row["name"] for row in table["sets"]] if table else context["query"].references.split(",")
        names = context["form"].known["references"]
        context |= {"choices": [(name, name in compared) for name in names], "most": MOST_SETS}
    return page(request, get_board(kind).get_renderer("TEMPLATE"), context, fragment="board")


@project_page(GET="read")
def systems(request: HttpRequest, project: Project) -> HttpResponse:
    return render_systems(request, project, request.GET)


def render_systems(
    request: HttpRequest, project: Project, given: Mapping[str, str], games_form: GamesForm | None = None
) -> HttpResponse:
    """Render the leaderboard of systems, with a form of games if one was submitted with errors."""
    by = given.get("by", "")
    if by and games_form is None and all(row.slug != by for row in list_judges(project)):
        # The method remains in the form if another evaluator, which cannot play games, was chosen.
        given = {name: given[name] for name in given if name != "method"}
    query = parse_query(SystemsQuery, given, project)
    context = build_context(request, project, query)
    if query.plays_games and context["may_write"]:
        initial = {name: getattr(query, name) for name in ("by", "systems", "references")}
        context["games_form"] = games_form or GamesForm(initial=initial)
    known = context["form"].known
    # The tab opens an evaluator that has scores, if there is one, and no trivial baseline.
    candidates = [query.by, *known["scored"], *known["baselines"], *known["by"]]
    assistants = list_assistants(query, known)
    usable = [name for name in assistants if name in known["scored"] or name in known["baselines"]]
    context |= {
        "has_choices": context["has_steps"] or (bool(context["rows"]) and has_choices(project)),
        "judges": list_ways(query, next(filter(None, candidates), ""), next(iter(usable or assistants), "")),
        "fit": find_fit(project) if query.assist == ASSISTANT else None,
        "may_fit": query.assist == ASSISTANT and context["may_write"],
        "games": query.plays_games,
        "is_old": context["answer"].is_old,
    }
    status = 422 if games_form is not None else 200
    return page(request, "scoring/systems/show.html", context, fragment="board", status=status)


def list_ways(query: SystemsQuery, evaluator: str, assistant: str) -> list[dict[str, Any]]:
    """Return the tabs for people, for people assisted by an evaluator, and for an evaluator. They keep the choice of
    systems."""
    kept = {name: value for name, value in query.non_default_params.items() if name == "systems"}
    people = {name: value for name, value in query.non_default_params.items() if name in ("aspect", "systems")}
    ways = [{"label": _("Human judgements"), "query": urlencode(kept), "is_current": not query.scored_by}]
    if assistant and query.method in ASSISTED:
        label = _("Assisted by %(name)s") % {"name": query.assist or query.by or assistant}
        assisted = urlencode({"assist": query.assist or query.by or assistant, **people})
        ways.append({"label": label, "query": assisted, "is_current": bool(query.assist)})
    if evaluator:
        by = urlencode({"by": evaluator, **kept})
        ways.append({"label": _("By evaluator"), "query": by, "is_current": bool(query.by)})
    return ways


@project_page(POST="write")
def play(request: HttpRequest, project: Project) -> HttpResponse:
    """Queue games by an evaluator, or show the leaderboard of systems again with the errors of the form."""
    if not request.POST.get("by"):
        raise BadInput(_("Name the evaluator that compares the texts."))
    form = GamesForm(request.POST)
    if response := start_run(request, project, form, start_games):
        return response
    given = {name: request.POST.get(name, "") for name in ("by", "systems", "references")}
    return render_systems(request, project, {**given, "method": METHOD}, games_form=form)


# ---- parts of the pages ---------------------------------------------------------------------------------------


def build_context(request: HttpRequest, project: Project, query: Any) -> dict[str, Any]:
    """Return the context of the page of any board."""
    answer, reason = answer_or_reason(project, query, request.user)
    form = BoardForm(query, project, answer.table)
    chosen = query.chosen
    names = sorted({*form.known["by"], *chosen}, key=natural_key)
    context = {
        "project": project,
        "kind": query.kind,
        "query": query,
        "form": form,
        "answer": answer,
        "table": answer.table,
        "reason": reason,
        "params": urlencode(query.non_default_params),
        "asked": query.params,
        "plot": make_plot_params(query, answer),
        "picture": plan_picture(project, query, answer.table),
        "may_write": may_write(request, project),
        "evaluator_choices": [(name, name in chosen) for name in names],
        "chosen": chosen,
        "tabs": list_tabs(project, query),
        **get_board(query.kind).get_renderer("build_context")(answer.table, query),
    }
    return context | build_grid(request, query.kind, context)


def build_grid(request: HttpRequest, kind: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a page as its reader wants to see it, by the address."""
    if not context["table"] or not context["table"]["rows"]:
        return {}
    arranged = get_board(kind).get_renderer("build_grid")(context["table"], context, dict(request.GET.lists()))
    return {"grid": arranged, "rows": arranged.rows}


def plan_picture(project: Project, query: Any, table: Mapping[str, Any] | None) -> Any:
    """Return the picture of a table, to reserve its place and to describe it; None without figures."""
    if not has_figures(table):
        return None
    plan = get_board(query.kind).get_renderer("plan_picture")
    return side_value(_("The plot"), lambda: plan(table, query, project.name), None)


def has_figures(table: Mapping[str, Any] | None) -> bool:
    """Return whether a table has a figure to draw, which may be 0."""
    parts = ("value", "pearson", "cells", "coefficients")
    return any(row.get(part) not in (None, [], {}) for row in (table or {"rows": []})["rows"] for part in parts)


def list_tabs(project: Project, query: Any) -> list[dict[str, Any]]:
    """Return the tabs of metric leaderboards, from the registry. Each keeps the choices of `query` that it has too."""
    root = reverse("project", args=[project.slug])
    tabs = []
    for board in list_boards().values():
        if board.query.tab:
            kept = {name: value for name, value in query.non_default_params.items() if name in board.query.names()}
            address = f"{root}{board.query.page}" + (f"?{urlencode(kept)}" if kept else "")
            tabs.append({"url": address, "label": _(board.query.tab), "is_current": board.kind == query.kind})
    return tabs


def read_params(given: QueryDict, kind: str) -> dict[str, Any]:
    """Return the parameters of an address that fit together. Evaluators and reference sets are check boxes in a form,
    or one text with commas."""
    values: dict[str, Any] = dict(given.items())
    if "evaluators" in values:
        values["evaluators"] = given.getlist("evaluators")
    if ticked := given.getlist("set"):
        values["references"] = ",".join(sorted(ticked, key=lambda name: name != given.get("first", "")))
    return get_board(kind).query.adapt(values)


def list_coefficients(table: Mapping[str, Any]) -> list[str]:
    """Return the coefficients of a stored table: the one that it was ordered by, and the three of every table."""
    return list(dict.fromkeys([table.get("coefficient") or "pearson", *COEFFICIENTS]))


def may_write(request: HttpRequest, project: Project) -> bool:
    """Return whether the user may write, by the role that `get_project` stored; no query."""
    return bool(request.user.is_superuser or project.role in ROLES_FOR["write"])  # type: ignore[attr-defined,union-attr]


def answer_or_reason(project: Project, query: Query, user: Any) -> tuple[Answer, str]:
    """Return the table, or the reason why there is none. A project without judgements is not an error of the reader."""
    try:
        return answer_leaderboard(project=project, query=query, user=user), ""
    except BadInput as error:
        return Answer(None, None, True), error.detail


def make_plot_params(query: Any, answer: Answer) -> str:
    """Return the query with the version of the data, so that browsers can cache the plot."""
    stamp = answer.leaderboard.stamp[:12] if answer.leaderboard else ""
    return "&".join(part for part in (urlencode(query.non_default_params), f"v={stamp}") if part)


# ---- files ----------------------------------------------------------------------------------------------------


@project_page(GET="read")
def board_file(request: HttpRequest, project: Project, kind: str, ending: str) -> HttpResponse:
    query = parse_query(get_board(kind).query, request.GET, project)
    return send_board(project=project, query=query, user=request.user, ending=ending)


def get_plotted_set(project: Project, query: EvaluatorsQuery, slug: str) -> ScoreSet:
    """Return the score set of this evaluator in the table."""
    ways: dict[str, Way] = {"ratings": "ratings", "m1": "turing"}
    aspect = ProjectData(project).choose_aspect(query.aspect, ways.get(query.people, "pairs")).name
    rows = ScoreSet.objects.filter(
        project=project,
        evaluator__slug=slug,
        references__in=[query.references, ""],
        aspect__in=["", aspect],
        scored_at__isnull=False,
    )
    score_set = rows.select_related("evaluator").order_by("-scored_at", "-pk").first()
    if score_set is None:
        raise NotThere(_("“%(name)s” has no scores to plot.") % {"name": slug})
    return score_set
