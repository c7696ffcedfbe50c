"""Pages of inter-annotator agreement: coefficients, reports of raters with named filters, calibration and power."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Aspect
from annotation.selectors.filters import get_filter, list_filters
from annotation.services.filters import create_filter, restore_filter, withdraw_filter
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import BadInput, EvalappError
from evalapp.common.pages import page, project_page
from evalapp.side_figures import side_value
from scoring.boards.agreement.columns import format_cells, list_used_columns, plan_growth
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.choices import JUDGED, RATINGS
from scoring.boards.render.page import Column, Grid, Scale, arrange, measure_width, place_rows
from scoring.forms.agreement import FilterForm, PowerForm
from scoring.forms.boards import AgreementForm

from ..downloads import send_board
from ..selectors.aspects import choose_judged_way, list_judged_ways
from ..selectors.leaderboards import parse_query
from ..selectors.planning import answer_plan, answer_power, read_question
from ..services.leaderboards import Answer, answer_leaderboard
from ..services.planning import answer_pilot
from .boards import make_plot_params, plan_picture


@project_page(GET="read")
def agreement(request: HttpRequest, project: Project) -> HttpResponse:
    """An overview of every aspect, and one aspect in detail."""
    context = _context(request, project)
    context["growth"] = side_value(_("The growth of reliability"), lambda: plan_growth(context["table"]), None)
    context["growth_plot"] = make_plot_params(context["query"], context["answer"])
    if context["reason"] == "":
        query = replace(context["query"], aspect="", judged="")
        whole = answer_leaderboard(project=project, query=query, user=request.user)
        context |= {"whole": whole, "asked": query.params, "whole_params": urlencode(query.non_default_params)}
        context |= {"picture": plan_picture(project, query, whole.table), "plot": make_plot_params(query, whole)}
        context |= _overview(whole.table, context["query"], request) if whole.table else {}
        context["pair_grid"] = _arrange_pairs(context["table"], request)
        if not whole.is_current:
            context["answer"] = whole
    return page(request, "scoring/agreement/show.html", context, fragment="board")


@project_page(GET="read", POST="write")
def raters(request: HttpRequest, project: Project) -> HttpResponse:
    """Reports of the raters of an aspect, with reasons to review some; the selected ones become a named filter."""
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
            text = _("Filter %(name)s created. Choose it above any table; no judgements were deleted.")
            messages.success(request, text % {"name": made.name})
            tail = urlencode({**context["query"].non_default_params, "filter": made.name})
            return redirect(f"{reverse('scoring:agreement-raters', args=[project.slug])}?{tail}")
    ticked = form.data.getlist("raters") if form.is_bound else []  # type: ignore[attr-defined]
    context |= {"filter_form": form, "filters": list(list_filters(project))}
    shown = [{**row, "ticked": row["rater"] in ticked, "cells": format_cells(row, rows)} for row in rows]
    context["grid"] = _arrange_raters(shown, list_used_columns(rows), request)
    return page(request, "scoring/agreement/raters.html", context, fragment="board", status=422 if form.errors else 200)


@project_page(GET="read")
def calibration(request: HttpRequest, project: Project) -> HttpResponse:
    """System means as rated, and adjusted for the biases of raters."""
    context = _context(request, project)
    if context["table"] and context["table"].get("calibration"):
        context |= _arrange_calibration(context["table"]["calibration"], request)
    return page(request, "scoring/agreement/calibration.html", context, fragment="board")


@project_page(GET="read")
def power(request: HttpRequest, project: Project) -> HttpResponse:
    """How many judgements are needed, with the project's judgements as the pilot."""
    aspects = list(Aspect.objects.filter(project=project).values_list("name", flat=True))
    asked = {name: value for name, value in request.GET.items() if name in PowerForm.base_fields}
    form = PowerForm(asked or None, aspects=aspects)
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


@project_page(POST="write")
def filter_move(request: HttpRequest, project: Project, name: str, move: str) -> HttpResponse:
    """Withdraw or restore a filter."""
    act = withdraw_filter if move == "withdraw" else restore_filter
    result = act(row=get_filter(project, name), user=request.user)
    text = _("Filter %(name)s restored.") if result.is_active else _("Filter %(name)s withdrawn: tables cannot use it.")
    messages.success(request, text % {"name": result.name})
    return redirect("scoring:agreement-raters", project.slug)


@project_page(GET="read")
def agreement_file(request: HttpRequest, project: Project, ending: str) -> HttpResponse:
    query = parse_query(AgreementQuery, _read_params(request))
    return send_board(project=project, query=query, user=request.user, ending=ending)


# ---- parts of the pages ---------------------------------------------------------------------------------------


def _read_params(request: HttpRequest) -> dict[str, str]:
    """Return the parameters; the select box `of` has the aspect and the way of judging."""
    given = {name: value for name, value in request.GET.items() if value}
    aspect, mark, judged = given.pop("of", "").rpartition("|")
    return {**given, "aspect": aspect, "judged": judged} if mark else given


def _context(request: HttpRequest, project: Project) -> dict[str, Any]:
    """Return the context with the detail table of the requested aspect, or of the first, or the reason without one."""
    query = parse_query(AgreementQuery, _read_params(request))
    ways = list_judged_ways(project)
    answer, reason = Answer(None, None, True), ""
    try:
        way = choose_judged_way(project, query, ways)
    except BadInput as error:
        reason = error.detail
    else:
        query = replace(query, aspect=way.aspect.name, judged=way.judged)
        answer = answer_leaderboard(project=project, query=query, user=request.user)
    return {
        "project": project,
        "query": query,
        "form": AgreementForm(query, project, ways),
        "answer": answer,
        "table": answer.table,
        "reason": reason,
        "ratings_name": _(RATINGS[query.ratings]),
        "judged_name": _(JUDGED[query.judged]) if query.judged else "",
        "params": urlencode(query.non_default_params),
        "may_write": can(user=request.user, project=project, need="write"),
    }


#: Columns of the overview after the first coefficient, which is plotted.
SHORT = {"fleiss": "Fleiss", "icc_a1": "ICC(A,1)", "percent": gettext_noop("percent agreement")}


def _overview(table: dict[str, Any], query: AgreementQuery, request: HttpRequest) -> dict[str, Any]:
    """Return the rows of all aspects, with alpha on an axis from -1 to 1."""
    names = {coefficient["name"] for row in table["rows"] for coefficient in row["coefficients"]}
    heads = [{"name": name, "short": _(label)} for name, label in SHORT.items() if name in names]
    lines = []
    for row in table["rows"]:
        by_name = {coefficient["name"]: coefficient for coefficient in row["coefficients"]}
        lines.append(
            {
                **row,
                "first": row["coefficients"][0],
                "others": [by_name.get(head["name"], {"value": None, "name": head["name"]}) for head in heads],
                "judged_name": _(JUDGED[row["judged"]]),
                "source_name": table.get("campaigns", {}).get(row["source"], row["source"]),
                "link": urlencode(replace(query, aspect=row["aspect"], judged=row["judged"]).non_default_params),
            }
        )
    columns = [
        Column("aspect", _("Aspect"), lambda row: row["aspect"], is_number=False, is_kept=True),
        Column("judged", _("Judged in"), lambda row: row["source_name"] or row["judged_name"], is_number=False),
        Column("alpha", _("alpha"), lambda row: row["first"]["value"]),
        Column("interval", _("alpha, 95 %"), lambda row: measure_width(row["first"]), is_drawn=True),
        Column("low", _("from"), lambda row: row["first"]["low"], css="narrow-hide", is_detail=True),
        Column("high", _("to"), lambda row: row["first"]["high"], css="narrow-hide", is_detail=True),
        *(
            Column(head["name"], head["short"], lambda row, place=place: row["others"][place]["value"],  # type: ignore[misc]
                   css="narrow-hide")
            for place, head in enumerate(heads)
        ),
        Column("units", _("Units"), lambda row: row["n_shared"],
               title=_("Units judged by at least two raters, of all units")),
        Column("raters", _("Raters"), lambda row: row["n_raters"], is_folded=True),
    ]  # fmt: skip
    scale = Scale(-1.0, 1.0, 0.0)
    rows = place_rows(lines, scale, "first")
    has_intervals = any(row["first"]["low"] is not None for row in rows)
    grid = arrange(columns, rows, dict(request.GET.lists()), has_intervals=has_intervals)
    return {"lines": grid.rows, "grid": grid, "scale": scale, "whole_table": table}


def _arrange_pairs(table: dict[str, Any] | None, request: HttpRequest) -> Grid | None:
    """Return the table of pairs of raters."""
    if not table or not table.get("pairs"):
        return None
    columns = [
        Column("a", _("Rater"), lambda row: row["a"], is_number=False),
        Column("b", _("and"), lambda row: row["b"], is_number=False),
        Column("units", _("Units in common"), lambda row: row["n"]),
        Column("kappa", _("kappa"), lambda row: row["kappa"]["value"]),
        Column("interval", "95 %", lambda row: measure_width(row["kappa"]), is_ascending=True),
        Column("percent", _("Percent agreement"), lambda row: row["percent"]["value"]),
    ]
    return arrange(columns, table["pairs"], dict(request.GET.lists()), name="pairs", default="-units")


def _arrange_raters(rows: list[dict[str, Any]], used: Sequence[Any], request: HttpRequest) -> Grid:
    """Return the table of reports of raters; those with reasons to review are first."""
    columns = [
        Column("rater", _("Rater"), lambda row: row["rater"], is_number=False, is_kept=True),
        Column("n", _("Judgements"), lambda row: row["n"]),
        *(
            Column(column.part, column.label, lambda row, place=place: row["cells"][place]["value"],  # type: ignore[misc]
                   title=column.help)
            for place, column in enumerate(used)
        ),
        Column("reasons", _("Reason to review"), lambda row: len(row["reasons"]) or None, is_number=False,
               is_ascending=False),
    ]  # fmt: skip
    return arrange(columns, rows, dict(request.GET.lists()))


def _arrange_calibration(found: dict[str, Any], request: HttpRequest) -> dict[str, Grid]:
    """Return the tables of systems and of raters of a calibration."""
    systems = [
        Column("rank", _("Rank"), lambda row: row["rank"], is_ascending=True),
        Column("system", _("System"), lambda row: row["system"], is_number=False),
        Column("raw", _("Raw"), lambda row: row["raw"]),
        Column("value", _("Calibrated"), lambda row: row["value"]),
        Column("interval", "95 %", measure_width, is_ascending=True),
        Column("difference", _("Difference"), lambda row: row["difference"]),
        Column("n", _("Ratings"), lambda row: row["n"]),
    ]
    raters = [
        Column("rater", _("Rater"), lambda row: row["rater"], is_number=False),
        Column("bias", _("Bias"), lambda row: row["value"]),
        Column("interval", "95 %", measure_width, is_ascending=True),
        Column("n", _("Ratings"), lambda row: row["n"]),
    ]
    given = dict(request.GET.lists())
    return {
        "system_grid": arrange(systems, found["systems"], given, default="rank"),
        "rater_grid": arrange(raters, found["raters"], given, name="raters"),
    }
