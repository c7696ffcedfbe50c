"""Pages of further tables of evaluators: by part of the items, by aspect, against each other; their files and plots are
made from the same tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_GET

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere, Unavailable
from evalapp.common.pages import page
from evalapp.side_figures import side_figure

from ..forms import QueryForm, aspect_names
from ..selectors.aspects import compared_aspects
from ..selectors.leaderboards import COEFFICIENTS, COMPARED, OF_LEVEL, SHAPES, TESTS, given_of, names_of, parse_query
from ..services.leaderboards import answer_leaderboard
from ..tables import cells_of, columns_of, letters_caption, remarks_of
from .boards import (
    _answer,
    _drawn,
    _of_shares,
    _pairs,
    _plot_params,
    asked_of,
    evaluator_choices,
    may_write,
    table_file,
)

FIELDS = {
    "slices": ["key", "aspect", "coefficient", "systems", "ratings", "references", "filter"],
    "aspects": ["level", "grouping", "systems", "coefficient", "ratings", "references", "filter"],
    "matrix": ["aspect", "level", "coefficient", "systems", "references"],
    "pairs": ["aspect", "systems", "test", "references", "filter"],
}
TITLES = {
    "slices": ("By part of the items", "How well each evaluator follows people in every part of the items"),
    "aspects": ("By aspect", "How well each evaluator follows people in every aspect"),
    "matrix": ("Against each other", "Which evaluators say the same as which others"),
    "pairs": ("On compared pairs", "How often each evaluator says of two texts what people said"),
}
TEMPLATES = {"pairs": "scoring/evaluation/pairs.html"}


@login_required
@require_GET
def board(request: HttpRequest, slug: str, kind: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(SHAPES[kind], _fitting(kind, request.GET), project)
    answer, reason = _answer(project, query, request.user)
    table = answer.table
    title, lead = TITLES[kind]
    form = _form(project, query, kind, table)
    remarks: list[Any] = []
    with side_figure("The remarks on figures"):
        remarks = remarks_of(table) if table else []
    context = {
        "project": project,
        "kind": kind,
        "title": title,
        "lead": lead,
        "query": query,
        "form": form,
        **evaluator_choices(form.known["by"], query),
        "answer": answer,
        "table": table,
        "reason": reason,
        "columns": columns_of(table) if table else [],
        "coefficient_label": COMPARED.get(getattr(query, "coefficient", ""), ""),
        "remarks": remarks,
        "params": urlencode(given_of(query)),
        "plot": _plot_params(query, answer),
        "asked": asdict(query),
        "may_write": may_write(request, project),
        **(pairs_shown(table) if kind == "pairs" else {}),
    }
    return page(request, TEMPLATES.get(kind, "scoring/evaluation/further.html"), context, fragment="board")


def pairs_shown(table: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the table on compared pairs is drawn from: each row with its three figures and the first one's interval
    around one half, which drawing reaches."""
    if table is None:
        return {"rows": []}
    rows = [{**row, "decided": row["cells"][0]} for row in table["rows"]]
    chance = {"decided": {"value": 0.5, "low": None, "high": None}}
    span = _of_shares([*rows, chance], "decided") if rows else (0.0, 1.0)
    drawn = _drawn(rows, span, "decided", signed=False)
    half = round(4 + 192 * (0.5 - span[0]) / ((span[1] - span[0]) or 1.0), 1)
    for row in drawn:
        row["half"] = half
    return {
        "rows": drawn,
        "tested_pairs": _pairs(table),
        "has_letters": any(row["letters"] for row in drawn),
        "letters_caption": letters_caption(table) if table["test"]["names"] else "",
        "has_ties": table["n_tied"] > 0,
    }


def _fitting(kind: str, given: QueryDict) -> dict[str, Any]:
    """What was chosen above the table, without what the level that was chosen last does not have."""
    asked = asked_of(given)
    level = asked.get("level") or "segment"
    if OF_LEVEL.get(asked.get("coefficient", ""), level) != level:
        del asked["coefficient"]
    if kind == "aspects" and level == "system":
        asked.pop("grouping", None)
    return asked


def _form(project: Project, query: Any, kind: str, table: Any) -> QueryForm:
    aspects = compared_aspects(project) if kind == "pairs" else aspect_names(project, rated=True)
    names = [name for name in FIELDS[kind] if name != "aspect" or len(aspects) > 1]
    values = {name: getattr(query, name) for name in names}
    if table and table["aspect"] and "aspect" in values:
        values["aspect"] = table["aspect"]
    if kind == "slices" and table:
        values["key"] = table["key"]
    form = QueryForm(initial=values, project=project, names=names, aspects=aspects, known=names_of(project))
    if kind == "pairs":
        fits = [(name, label) for name, label in TESTS.items() if name != "williams"]
        form.fields["test"].choices = fits  # type: ignore[attr-defined]
    else:
        level = getattr(query, "level", "segment")
        named = {
            "slices": list(COEFFICIENTS),
            "matrix": ["pearson", "spearman"],
            "aspects": [name for name in COMPARED if OF_LEVEL.get(name, level) == level],
        }[kind]
        form.fields["coefficient"].choices = [(name, COMPARED[name]) for name in named]  # type: ignore[attr-defined]
    for name in ("references", "filter"):
        if name in form.fields and len(form.fields[name].choices) < 2:  # type: ignore[attr-defined]
            del form.fields[name]
    return form


@login_required
@require_GET
def board_file(request: HttpRequest, slug: str, kind: str, ending: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    answer = answer_leaderboard(
        project=project, query=parse_query(SHAPES[kind], request.GET, project), user=request.user
    )
    if answer.table is None or not answer.is_current:
        raise Unavailable("The table is being computed. Look at its page and try again when it stands.")
    return table_file(answer.table, ending, f"{project.slug}-{kind}")


def draw_board(request: HttpRequest, project: Project, kind: str, theme: Any) -> Any:
    """The table as a heat map; raises `NotThere` where there is nothing to be drawn."""
    from .. import plots

    query = parse_query(SHAPES[kind], request.GET, project)
    answer, reason = _answer(project, query, request.user)
    table = answer.table
    if table is None or not table["rows"]:
        raise NotThere(reason or "There is nothing to be drawn yet.")
    if kind == "pairs":
        return plots.draw_forest(
            [{"label": row["evaluator"], "grey": row["is_sentinel"], **row["cells"][0]} for row in table["rows"]],
            title=f"Evaluators on compared pairs of {project.name}, {table['aspect']}",
            description="; ".join(
                f"{row['evaluator']} {row['cells'][0]['value']:.2f}"
                for row in table["rows"]
                if row["cells"][0]["value"] is not None
            )[:2000],
            axis="decided pairs right, 95 %",
            theme=theme,
            zero=False,
        )
    cells = [
        {"row": row, "column": column, "value": estimate["value"]}
        for row, column, estimate, _ in cells_of(table)
        if estimate is not None
    ]
    name = COMPARED[query.coefficient]
    words = "; ".join(f"{c['row']} and {c['column']} {c['value']:.2f}" for c in cells if c["value"] is not None)
    return plots.draw_heat(
        cells,
        rows=[row["evaluator"] for row in table["rows"]],
        columns=columns_of(table),
        title=f"Evaluators {TITLES[kind][0].lower()}, {name}",
        description=words[:2000],
        axis=name,
        theme=theme,
    )
