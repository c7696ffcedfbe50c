"""Pages of further tables of evaluators: by part of the items, by aspect, against each other; their files and plots are
made from the same tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_GET

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import Unavailable
from evalapp.common.pages import page
from evalapp.side_figures import side_figure
from scoring.boards.base import Query
from scoring.boards.choices import CHOICES, COMPARED, OF_LEVEL
from scoring.boards.registry import get_board
from scoring.boards.render.cells import columns_of, remarks_of
from scoring.forms.fields import QueryForm, aspect_names

from ..selectors.aspects import compared_aspects
from ..selectors.leaderboards import names_of, parse_query
from ..services.leaderboards import answer_leaderboard
from .boards import answer_or_reason, asked_of, evaluator_choices, may_write, plot_params, table_file


@login_required
@require_GET
def board(request: HttpRequest, slug: str, kind: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(get_board(kind).query, _fitting(request.GET), project)
    answer, reason = answer_or_reason(project, query, request.user)
    table = answer.table
    columns = get_board(kind).module("columns")
    form = _form(project, query, columns, table)
    remarks: list[Any] = []
    with side_figure("The remarks on figures"):
        remarks = remarks_of(table) if table else []
    context = {
        "project": project,
        "kind": kind,
        "title": columns.TITLE,
        "lead": columns.LEAD,
        "query": query,
        "form": form,
        **evaluator_choices(form.known["by"], query),
        "answer": answer,
        "table": table,
        "reason": reason,
        "columns": columns_of(table) if table else [],
        "coefficient_label": COMPARED.get(getattr(query, "coefficient", ""), ""),
        "remarks": remarks,
        "params": urlencode(query.non_default_params),
        "plot": plot_params(query, answer),
        "asked": asdict(query),
        "may_write": may_write(request, project),
        **columns.build_context(table, query),
    }
    return page(request, getattr(columns, "TEMPLATE", "scoring/evaluation/further.html"), context, fragment="board")


def _fitting(given: QueryDict) -> dict[str, Any]:
    """What was chosen above the table, without what the level that was chosen last does not have."""
    asked = asked_of(given)
    level = asked.get("level") or "segment"
    if OF_LEVEL.get(asked.get("coefficient", ""), level) != level:
        del asked["coefficient"]
    if level == "system":
        asked.pop("grouping", None)
    return asked


def _form(project: Project, query: Query, columns: Any, table: Any) -> QueryForm:
    compared = getattr(columns, "JUDGED", "ratings") == "comparisons"
    aspects = compared_aspects(project) if compared else aspect_names(project, rated=True)
    names = [name for name in columns.FIELDS if name != "aspect" or len(aspects) > 1]
    values = {name: getattr(query, name) for name in names}
    for name in ("aspect", "key"):
        if table and table.get(name) and name in values:
            values[name] = table[name]
    form = QueryForm(initial=values, project=project, names=names, aspects=aspects, known=names_of(project))
    for name, fits in query.choices().items():
        if name in form.fields:
            form.fields[name].choices = [(value, CHOICES[name][value]) for value in fits]  # type: ignore[attr-defined]
    for name in ("references", "filter"):
        if name in form.fields and len(form.fields[name].choices) < 2:  # type: ignore[attr-defined]
            del form.fields[name]
    return form


@login_required
@require_GET
def board_file(request: HttpRequest, slug: str, kind: str, ending: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    answer = answer_leaderboard(
        project=project, query=parse_query(get_board(kind).query, request.GET, project), user=request.user
    )
    if answer.table is None or not answer.is_current:
        raise Unavailable("The table is being computed. Look at its page and try again when it stands.")
    return table_file(answer.table, ending, f"{project.slug}-{kind}")
