"""Pages of the two leaderboards, and the same tables as CSV, JSON and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_GET

from annotation.selectors.campaigns import has_adaptive
from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, NotThere, Unavailable
from evalapp.common.pages import page
from scoring.boards.base import Way
from scoring.boards.choices import COEFFICIENTS, COMPARED, LEVELS, MODELED, MODELS, OF_LEVEL, PEOPLE
from scoring.boards.data.project import ProjectData
from scoring.boards.metrics import columns as metrics_columns
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.render.json import FORMATS
from scoring.boards.systems import columns as systems_columns
from scoring.boards.systems.query import SystemsQuery
from scoring.forms.fields import QueryForm, aspect_names
from scoring.forms.games import GamesForm

from ..models import ScoreSet
from ..selectors.catalogue import get_entry
from ..selectors.games import judges_of
from ..selectors.leaderboards import names_of, parse_query, people_of
from ..selectors.selecting import has_choices
from ..services.leaderboards import Answer, answer_leaderboard, note_reading

BY_PEOPLE = ["aspect", "method", "ratings", "systems", "campaign", "filter"]
BY_EVALUATOR = ["by", "systems", "references"]
#: How an evaluator that compares texts can rank systems.
BY_JUDGE = {"mean": "Mean score", "glicko2": "Glicko-2 (games)"}
EVALUATORS = [
    "aspect",
    "people",
    "level",
    "grouping",
    "undefined",
    "systems",
    "coefficient",
    "test",
    "ratings",
    "references",
    "filter",
]


@login_required
@require_GET
def systems(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    return systems_page(request, project, request.GET)


def systems_page(
    request: HttpRequest, project: Project, given: Mapping[str, str], games_form: GamesForm | None = None
) -> HttpResponse:
    """The page of systems as these parameters ask for it; with a form of games that has faults, these beside it."""
    by = given.get("by", "")
    judge = next((row for row in judges_of(project) if row.slug == by), None) if by else None
    if by and judge is None and games_form is None:
        # Another evaluator was chosen above the table, of which there are scores alone.
        given = {name: given[name] for name in given if name != "method"}
    query = parse_query(SystemsQuery, given, project)
    games = query.plays_games
    answer, reason = answer_or_reason(project, query, request.user)
    names = BY_EVALUATOR if query.by else BY_PEOPLE
    if judge is not None:
        reads = not games or "references" in get_entry(judge.name).needs
        names = ["by", "method", "systems", *(["references"] if reads else [])]
    if not query.by and query.method != "mean":
        names = [name for name in names if name != "ratings"]
    if not query.by and query.method in MODELS and has_adaptive(project):
        names = [*names, "weights"]
    if not query.by and query.method in MODELED:
        names = [*names, "covariates"]
    if not query.by and query.method == "m1":
        names = [*names, "per"]
    table, known = answer.table, names_of(project)
    if query.by and table and table["aspect"]:
        names = ["aspect", *names]
    form = _form(project, query, names, table, rated=query.method == "mean", known=known)
    if judge is not None:
        form.fields["method"].choices = list(BY_JUDGE.items())  # type: ignore[attr-defined]
    shown = systems_columns.build_context(table, query)
    writes = may_write(request, project)
    context = {
        "project": project,
        "query": query,
        "form": form,
        "answer": answer,
        "table": table,
        "reason": reason,
        **shown,
        "has_choices": shown["has_steps"] or (bool(shown["rows"]) and has_choices(project)),
        "params": urlencode(query.non_default_params),
        "asked": asdict(query),
        "evaluators": known["by"],
        "plot": plot_params(query, answer),
        "may_write": writes,
        "games": games,
        "games_form": (games_form or _games_form(query)) if games and writes else None,
        "is_old": answer.is_old,
    }
    status = 422 if games_form is not None else 200
    return page(request, "scoring/systems/show.html", context, fragment="board", status=status)


def _games_form(query: SystemsQuery) -> GamesForm:
    return GamesForm(initial={name: getattr(query, name) for name in ("by", "systems", "references")})


@login_required
@require_GET
def evaluation(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(EvaluatorsQuery, _fitting(request.GET), project)
    answer, reason = answer_or_reason(project, query, request.user)
    table = answer.table
    if table and table["rows"]:
        note_reading(project=project, user=request.user)
    shown = metrics_columns.build_context(table, query)
    form = _evaluators_form(project, query, table)
    context = {
        "project": project,
        "query": query,
        "form": form,
        **evaluator_choices(form.known["by"], query),
        "answer": answer,
        "table": table,
        "reason": reason,
        **shown,
        "shown": _chosen(project, table, request.GET.get("plot", "")),
        "missing_sentinels": any(row["is_sentinel"] and row["score_set"] is None for row in shown["rows"]),
        "params": urlencode(query.non_default_params),
        "asked": asdict(query),
        "plot": plot_params(query, answer),
        "may_write": may_write(request, project),
    }
    return page(request, "scoring/evaluation/show.html", context, fragment="board")


def evaluator_choices(known: list[str], query: Any) -> dict[str, Any]:
    """The evaluators that can be compared, each with whether it was ticked; none is where all are compared."""
    chosen = query.chosen
    names = sorted({*known, *chosen})
    return {"evaluator_choices": [(name, name in chosen) for name in names], "chosen": chosen}


def asked_of(given: QueryDict) -> dict[str, Any]:
    """The parameters of an address; the evaluators come as ticks of a form, or as one text with commas."""
    asked: dict[str, Any] = dict(given.items())
    return asked | ({"evaluators": given.getlist("evaluators")} if "evaluators" in asked else {})


def _fitting(given: QueryDict) -> dict[str, Any]:
    """What was chosen above the table, without what the level that was chosen last does not have."""
    asked = asked_of(given)
    compared = asked.get("people", "ratings") not in ("", "ratings")
    if compared:
        asked["level"] = "system"
    level = asked.get("level") or "segment"
    if OF_LEVEL.get(asked.get("coefficient", ""), level) != level or (compared and asked.get("coefficient") == "spa"):
        del asked["coefficient"]
    if level != "segment":
        asked.pop("grouping", None)
    return asked


def _evaluators_form(project: Project, query: EvaluatorsQuery, table: Mapping[str, Any] | None) -> QueryForm:
    """Without the choices that what people said does not leave open."""
    names, compared = EVALUATORS, query.people != "ratings"
    if compared:
        names = [name for name in names if name not in ("level", "grouping", "ratings")]
    if query.grouping == "none":
        names = [name for name in names if name != "undefined"]
    form = _form(project, query, names, table, rated=not compared)
    ways = people_of(form.known)
    if ways == ["ratings"]:
        del form.fields["people"]
    else:
        choices = [(name, PEOPLE[name]) for name in PEOPLE if name in ways or name == query.people]
        form.fields["people"].choices = choices  # type: ignore[attr-defined]
    if compared:
        fits = [pair for pair in form.fields["coefficient"].choices if pair[0] != "spa"]  # type: ignore[attr-defined]
        form.fields["coefficient"].choices = fits  # type: ignore[attr-defined]
    return form


def coefficient_of(request: HttpRequest, default: str = "pearson") -> str:
    coefficient = request.GET.get("coefficient", default)
    if coefficient not in COEFFICIENTS:
        raise BadInput(f"coefficient is one of {', '.join(COEFFICIENTS)}, not “{coefficient}”.")
    return coefficient


def may_write(request: HttpRequest, project: Project) -> bool:
    """By the role that `get_project` found; asks nothing."""
    return bool(request.user.is_superuser or project.role in ROLES_FOR["write"])  # type: ignore[attr-defined,union-attr]


def answer_or_reason(project: Project, query: Any, user: Any) -> tuple[Answer, str]:
    """The table, or why there is none: nothing judged yet is a state of the project, not a mistake of the reader."""
    try:
        return answer_leaderboard(project=project, query=query, user=user), ""
    except BadInput as error:
        return Answer(None, None, True), error.detail


def _form(
    project: Project,
    query: Any,
    names: list[str],
    table: Mapping[str, Any] | None,
    *,
    rated: bool,
    known: Mapping[str, list[str]] | None = None,
) -> QueryForm:
    aspects = aspect_names(project, rated=rated)
    values = {name: getattr(query, name) for name in names}
    if table and table["aspect"]:
        values["aspect"] = table["aspect"]
    if len(aspects) < 2:
        names = [name for name in names if name != "aspect"]
    form = QueryForm(initial=values, project=project, names=names, aspects=aspects, known=known)
    if "level" in form.fields and query.has_dialogues and "dialogue" in form.known["level"]:
        form.fields["level"].choices = list(LEVELS.items())  # type: ignore[attr-defined]
    if "coefficient" in form.fields:
        fits = [(name, label) for name, label in COMPARED.items() if OF_LEVEL.get(name, query.level) == query.level]
        form.fields["coefficient"].choices = fits  # type: ignore[attr-defined]
    for name in ("references", "filter", "campaign"):
        if name in form.fields and len(form.fields[name].choices) < 2:  # type: ignore[attr-defined]
            del form.fields[name]
    return form


def plot_params(query: Any, answer: Answer) -> str:
    """The query with the state of the data, so that a browser may keep the picture."""
    stamp = answer.leaderboard.stamp[:12] if answer.leaderboard else ""
    return "&".join(part for part in (urlencode(query.non_default_params), f"v={stamp}") if part)


def _chosen(project: Project, table: Mapping[str, Any] | None, slug: str) -> dict[str, Any] | None:
    if not table or not slug:
        return None
    return next((row for row in table["rows"] if row["evaluator"] == slug and row["score_set"]), None)


# ---- files ------------------------------------------------------------------------------------------------


@login_required
@require_GET
def systems_file(request: HttpRequest, slug: str, ending: str) -> HttpResponse:
    return _file(request, slug, ending, SystemsQuery, "systems")


@login_required
@require_GET
def evaluation_file(request: HttpRequest, slug: str, ending: str) -> HttpResponse:
    return _file(request, slug, ending, EvaluatorsQuery, "evaluators")


def _file(request: HttpRequest, slug: str, ending: str, shape: Any, name: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    answer = answer_leaderboard(project=project, query=parse_query(shape, request.GET, project), user=request.user)
    if answer.table is None or not answer.is_current:
        raise Unavailable("The table is being computed. Look at the leaderboard's page and try again when it stands.")
    return table_file(answer.table, ending, f"{project.slug}-{name}")


def table_file(table: Mapping[str, Any], ending: str, stem: str) -> HttpResponse:
    """A table as CSV, JSON or LaTeX."""
    write, media_type = FORMATS[ending]
    response = HttpResponse(write(table), content_type=media_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{stem}.{ending}"'
    return response


def get_plotted_set(project: Project, query: EvaluatorsQuery, slug: str) -> ScoreSet:
    """The set that stands in the table for this evaluator."""
    way: Way = {"ratings": "ratings", "m1": "turing"}.get(query.people, "pairs")  # type: ignore[assignment]
    aspect = ProjectData(project).choose_aspect(query.aspect, way).name
    rows = ScoreSet.objects.filter(
        project=project,
        evaluator__slug=slug,
        references__in=[query.references, ""],
        aspect__in=["", aspect],
        scored_at__isnull=False,
    )
    found = rows.select_related("evaluator").order_by("-scored_at", "-pk").first()
    if found is None:
        raise NotThere(f"There are no scores of “{slug}” to be drawn.")
    return found
