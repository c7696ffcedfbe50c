"""Pages of what references are worth: evaluators by reference set, and curves of reliability."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import BadInput, EvalappError, NotThere, Unavailable
from evalapp.common.forms import number_in
from evalapp.common.models import Run
from evalapp.common.pages import page
from evalapp.common.params import GREATEST_SEED, LEAST_SEED
from scoring.boards.choices import MOST_SETS
from scoring.boards.references.query import EnhancedQuery
from scoring.forms.fields import QueryForm, aspect_names
from scoring.forms.fields import reference_sets as names_of

from ..selectors.leaderboards import names_of as evaluators_of
from ..selectors.leaderboards import parse_query
from ..selectors.reliability_curves import PANELS, latest_curves
from ..selectors.training import ream_under_way, trained_of
from ..services.leaderboards import Answer, answer_leaderboard
from ..services.reliability_curves import CurveWishes, start_curves
from .boards import asked_of, evaluator_choices, table_file

FIELDS = ["aspect", "level", "grouping", "systems", "ratings"]


@login_required
@require_GET
def enhanced(request: HttpRequest, slug: str) -> HttpResponse:
    """Every evaluator with each of the sets, side by side (Table 3 of the paper, for any project)."""
    project = get_project(user=request.user, slug=slug, need="read")
    query = _query(request, project)
    answer, reason = _answer(project, query, request.user)
    table = answer.table
    chosen = [row["name"] for row in table["sets"]] if table else query.references.split(",")
    context = {
        "project": project,
        "query": query,
        "form": _form(project, query, table),
        **evaluator_choices(evaluators_of(project)["by"], query),
        "choices": [(name, name in chosen) for name in names_of(project)],
        "most": MOST_SETS,
        "answer": answer,
        "table": table,
        "rows": _shown(table) if table else [],
        "reason": reason,
        "params": urlencode(query.non_default_params),
        "asked": asdict(query),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/references/enhanced.html", context, fragment="board")


def _query(request: HttpRequest, project: Project) -> EnhancedQuery:
    """The sets come as ticks of a form, or as one text with commas."""
    given = asked_of(request.GET)
    ticked = request.GET.getlist("set")
    first = request.GET.get("first", "")
    if ticked:
        ordered = sorted(ticked, key=lambda name: name != first)
        given["references"] = ",".join(ordered)
    query: EnhancedQuery = parse_query(EnhancedQuery, given, project)
    return query


def _answer(project: Project, query: EnhancedQuery, user: Any) -> tuple[Answer, str]:
    """The table, or why there is none."""
    try:
        return answer_leaderboard(project=project, query=query, user=user), ""
    except BadInput as error:
        return Answer(None, None, True), error.detail


def _form(project: Project, query: EnhancedQuery, table: dict[str, Any] | None) -> QueryForm:
    aspects = aspect_names(project, rated=True)
    values = {name: getattr(query, name) for name in FIELDS}
    if table and table["aspect"]:
        values["aspect"] = table["aspect"]
    names = [name for name in FIELDS if name != "aspect" or len(aspects) > 1]
    return QueryForm(initial=values, project=project, names=names, aspects=aspects)


def _shown(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows with their cells in the order of the sets, each with its difference to the first."""
    rows = []
    for row in table["rows"]:
        to_first = {d["a"]: d for d in row["differences"] if d["b"] == table["baseline"]}
        best = max((cell["pearson"]["value"] or -2 for cell in row["cells"].values()), default=-2)
        cells = [
            {
                **row["cells"][of["name"]], "set": of["name"], "difference": to_first.get(of["name"]),
                "is_best": row["cells"][of["name"]]["pearson"]["value"] == best,
            }
            for of in table["sets"]
        ]  # fmt: skip
        rows.append({**row, "cells": cells})
    return rows


@login_required
@require_GET
def enhanced_file(request: HttpRequest, slug: str, ending: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    answer = answer_leaderboard(project=project, query=_query(request, project), user=request.user)
    if answer.table is None or not answer.is_current:
        raise Unavailable("The table is being computed. Look at its page and try again when it stands.")
    return table_file(answer.table, ending, f"{project.slug}-by-references")


# ---- curves -----------------------------------------------------------------------------------------------


class CurvesForm(forms.Form):
    """Which evaluator is looked at, and which other one for the transfer."""

    evaluator = forms.ChoiceField(label="Evaluator", help_text="A trained ream.")
    other = forms.ChoiceField(
        required=False,
        label="For the transfer",
        help_text="A ream for another metric: what one chooses, the other uses.",
    )
    references = forms.ChoiceField(label="References", help_text="The set that sets of all sizes are drawn from.")
    sample = forms.IntegerField(
        initial=300, min_value=1, max_value=5000, label="Items, at most", help_text="Drawn by the seed."
    )
    seed = forms.IntegerField(initial=13, min_value=LEAST_SEED, max_value=GREATEST_SEED, label="Seed")

    def __init__(self, *args: object, project: Project, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        slugs = [(slug, slug) for slug in trained_of(project).filter(name="ream").values_list("slug", flat=True)]
        sets = [(name, name) for name in names_of(project)]
        for name, choices in (("evaluator", slugs), ("other", [("", "none"), *slugs]), ("references", sets)):
            self.fields[name].choices = choices  # type: ignore[attr-defined]
        if len(slugs) < 2:
            del self.fields["other"]


@login_required
@require_http_methods(["GET", "POST"])
def reliability_curves(request: HttpRequest, slug: str) -> HttpResponse:
    """Reliability by number of references; the curves are computed in a run, the page only draws the last ones."""
    project = get_project(user=request.user, slug=slug, need="write" if request.method == "POST" else "read")
    form = CurvesForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        given = {name: value for name, value in form.cleaned_data.items() if value not in ("", None)}
        try:
            run = start_curves(project=project, user=request.user, wishes=CurveWishes(**given))
        except EvalappError as error:
            form.add_error(None, error.detail)
        else:
            messages.success(request, f"{run.title}: in the queue.")
            return redirect("run", project.slug, run.pk)
    shown = _find_curves(project, request.GET.get("run", ""))
    context = {
        "project": project,
        "form": form,
        "runs": latest_curves(project),
        "shown": shown,
        "found": shown.result if shown else None,
        "panels": [(name, text) for name, text in PANELS.items() if shown and shown.result["panels"].get(name)],
        "has_judge": trained_of(project).filter(name="ream").exists(),
        "training": ream_under_way(project),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/references/curves.html", context, status=422 if form.errors else 200)


def _find_curves(project: Project, number: str) -> Run | None:
    """The run of that number, or the last one that has curves."""
    rows = latest_curves(project)
    if (wanted := number_in(number)) is not None:
        found = Run.objects.filter(project=project, kind="reliability", pk=wanted).first()
        if found is None or not found.result:
            raise NotThere("There are no curves of this run.")
        return found
    return rows[0] if rows else None
