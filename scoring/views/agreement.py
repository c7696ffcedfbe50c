"""Pages about the people who judge: how far they agree, who stands out, what their biases do to systems; and named
filters of raters, made where one looks at them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.models import Aspect
from annotation.selectors.filters import get_filter, list_filters
from annotation.services.filters import create_filter, restore_filter, withdraw_filter
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import BadInput, EvalappError, Unavailable
from evalapp.common.pages import page
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.agreement.rater_columns import cells_of, columns_of
from scoring.boards.choices import JUDGED, RATINGS
from scoring.forms.agreement import AgreementForm, FilterForm, PowerForm

from ..selectors.leaderboards import parse_query
from ..selectors.planning import answer_plan, answer_power, read_question
from ..services.leaderboards import Answer, answer_leaderboard
from ..services.planning import answer_pilot
from .boards import table_file


@login_required
@require_GET
def agreement(request: HttpRequest, slug: str) -> HttpResponse:
    """Every aspect in a line, one aspect in detail."""
    project = get_project(user=request.user, slug=slug, need="read")
    context = _context(request, project)
    if context["reason"] == "":
        whole = answer_leaderboard(project=project, query=_whole(context["query"]), user=request.user)
        context["whole"] = whole
        context["asked"] = asdict(_whole(context["query"]))
        context["whole_params"] = urlencode(_whole(context["query"]).non_default_params)
        context |= _overview(whole.table, context["query"]) if whole.table else {}
        if not whole.is_current:
            context["answer"] = whole
    return page(request, "scoring/agreement/show.html", context, fragment="board")


@login_required
@require_http_methods(["GET", "POST"])
def raters(request: HttpRequest, slug: str) -> HttpResponse:
    """Everybody who judged an aspect, with reasons to look at somebody; ticked ones become a named filter."""
    project = get_project(user=request.user, slug=slug, need="write" if request.method == "POST" else "read")
    context = _context(request, project)
    rows = context["table"].get("raters", []) if context["table"] else []
    form = FilterForm(request.POST or None, raters=[row["rater"] for row in rows])
    if request.method == "POST" and form.is_valid():
        try:
            made = create_filter(project=project, user=request.user, **form.cleaned_data)
        except EvalappError as error:
            for fault in error.faults:
                form.add_error(fault.field or None, fault.message)
            if not error.faults:
                form.add_error("name", error.detail)
        else:
            messages.success(
                request, f"The filter {made.name} is there. Choose it above any table; nothing was deleted."
            )
            tail = urlencode({**context["query"].non_default_params, "filter": made.name})
            return redirect(f"{reverse('scoring:agreement-raters', args=[slug])}?{tail}")
    ticked = form.data.getlist("raters") if form.is_bound else []  # type: ignore[attr-defined]
    context |= {"filter_form": form, "filters": list(list_filters(project)), "rater_columns": columns_of(rows)}
    context["rater_rows"] = [{**row, "ticked": row["rater"] in ticked, "cells": cells_of(row, rows)} for row in rows]
    return page(request, "scoring/agreement/raters.html", context, fragment="board", status=422 if form.errors else 200)


@login_required
@require_GET
def calibration(request: HttpRequest, slug: str) -> HttpResponse:
    """System means as given beside means without the biases of who rated them."""
    project = get_project(user=request.user, slug=slug, need="read")
    return page(request, "scoring/agreement/calibration.html", _context(request, project), fragment="board")


@login_required
@require_GET
def power(request: HttpRequest, slug: str) -> HttpResponse:
    """How many judgements are needed, with what is there as the pilot."""
    project = get_project(user=request.user, slug=slug, need="read")
    aspects = list(Aspect.objects.filter(project=project).values_list("name", flat=True))
    form = PowerForm(request.GET or None, aspects=aspects)
    found, status, answer = None, 200, Answer(None, None, True)
    if not form.is_bound or form.is_valid():
        try:
            question = read_question(form.cleaned_data if form.is_bound else {})
            if question.test == "rating":
                answer = answer_pilot(project, question.aspect, request.user)
                found = answer_plan(question, answer.table) if answer.table or answer.is_current else None
            else:
                found = answer_power(question, project)
        except BadInput as error:
            for fault in error.faults:
                form.add_error(fault.field if fault.field in form.fields else None, fault.message)
            status = 422
    else:
        status = 422
    context = {"project": project, "form": None, "power_form": form, "found": found, "params": "", "answer": answer}
    return page(request, "scoring/agreement/power.html", context, fragment="board", status=status)


@login_required
@require_POST
def filter_move(request: HttpRequest, slug: str, name: str, move: str) -> HttpResponse:
    """Withdraw a filter, or take it up again."""
    project = get_project(user=request.user, slug=slug, need="write")
    act = withdraw_filter if move == "withdraw" else restore_filter
    found = act(found=get_filter(project, name), user=request.user)
    words = "can be used again" if found.is_active else "is withdrawn: no table can be asked for with it"
    messages.success(request, f"The filter {found.name} {words}.")
    return redirect("scoring:agreement-raters", slug)


@login_required
@require_GET
def agreement_file(request: HttpRequest, slug: str, ending: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(AgreementQuery, _asked(request))
    answer = answer_leaderboard(project=project, query=query, user=request.user)
    if answer.table is None or not answer.is_current:
        raise Unavailable("The table is being computed. Look at the agreement page and try again when it stands.")
    return table_file(answer.table, ending, f"{project.slug}-agreement")


# ---- what every page shows ----------------------------------------------------------------------------------


def _asked(request: HttpRequest) -> dict[str, str]:
    """The parameters; `of` is aspect and way of judging in one, as the select box has them."""
    given = {name: value for name, value in request.GET.items() if value}
    aspect, mark, judged = given.pop("of", "").rpartition("|")
    return {**given, "aspect": aspect, "judged": judged} if mark else given


def _context(request: HttpRequest, project: Project) -> dict[str, Any]:
    """The detail table of the aspect that is asked for, or of the first; or why there is none."""
    from ..selectors.agreement import choose_asked, list_asked

    query = parse_query(AgreementQuery, _asked(request))
    asked = [(row.aspect.name, row.judged) for row in list_asked(project)]
    answer, reason = Answer(None, None, True), ""
    if asked:
        chosen = choose_asked(project, query)
        query = replace(query, aspect=chosen.aspect.name, judged=chosen.judged)
        answer = answer_leaderboard(project=project, query=query, user=request.user)
    else:
        try:
            choose_asked(project, query)
        except BadInput as error:
            reason = error.detail
    initial = {
        "of": f"{query.aspect}|{query.judged}",
        "campaign": query.campaign,
        "scale": query.scale,
        "ratings": query.ratings,
    }
    return {
        "project": project,
        "query": query,
        "form": AgreementForm(initial={**initial, "filter": query.filter}, project=project, asked=asked),
        "answer": answer,
        "table": answer.table,
        "reason": reason,
        "ratings_name": RATINGS[query.ratings],
        "judged_name": JUDGED.get(query.judged, ""),
        "params": urlencode(query.non_default_params),
        "may_write": can(user=request.user, project=project, need="write"),
    }


def _whole(query: AgreementQuery) -> AgreementQuery:
    """The same question about all aspects."""
    return replace(query, aspect="", judged="")


#: Columns of the overview beside the first coefficient, which is drawn.
SHORT = {"fleiss": "Fleiss", "icc_a1": "ICC(A,1)", "percent": "same answer"}


def _overview(table: dict[str, Any], query: AgreementQuery) -> dict[str, Any]:
    """Lines of every aspect with the places of alpha on an axis from -1 to 1, 200 wide."""
    names = {found["name"] for row in table["rows"] for found in row["coefficients"]}
    heads = [{"name": name, "short": label} for name, label in SHORT.items() if name in names]
    lines = []
    for row in table["rows"]:
        by_name = {found["name"]: found for found in row["coefficients"]}
        first = row["coefficients"][0]
        lines.append(
            {
                **row,
                "first": first,
                "drawn": {"x": _at(first["value"]), "x_low": _at(first["low"]), "x_high": _at(first["high"])},
                "zero": _at(0.0),
                "others": [by_name.get(head["name"], {"value": None, "name": head["name"]}) for head in heads],
                "judged_name": JUDGED[row["judged"]],
                "source_name": table.get("campaigns", {}).get(row["source"], row["source"]),
                "link": urlencode(replace(query, aspect=row["aspect"], judged=row["judged"]).non_default_params),
            }
        )
    return {"lines": lines, "heads": heads, "whole_table": table}


def _at(value: float | None) -> float | None:
    return None if value is None else round(4 + 192 * (max(value, -1.0) + 1) / 2, 1)
