"""The page of robustness reports: scores of evaluators by kind of text."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.http import require_http_methods

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import EvalappError
from evalapp.common.pages import page

from ..selectors.robustness import latest_reports, reportable, reports_under_way
from ..selectors.written_kinds import KINDS, SAMPLE, find_sources
from ..services.reports import MOST_ITEMS, RobustnessOptions, start_robustness

#: Column heads of the kinds.
HEADS = {
    "MGE": gettext_noop("Machine"),
    "HWE": gettext_noop("Free"),
    "LDHWE": gettext_noop("Other words"),
    "HWEBQ": gettext_noop("Better"),
    "AE": gettext_noop("Wrong"),
}


class RobustnessForm(forms.Form):
    evaluator = forms.ChoiceField(label=gettext_lazy("Evaluator"))
    sample = forms.IntegerField(
        initial=SAMPLE, min_value=1, max_value=MOST_ITEMS, label=gettext_lazy("Maximum items"),
        help_text=gettext_lazy("Sampled from the items that have wrong answers."),
    )  # fmt: skip

    def __init__(self, *args: Any, names: list[str], has_wrong: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["evaluator"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        if not has_wrong:
            del self.fields["sample"]


@login_required
@require_http_methods(["GET", "POST"])
def robustness(request: HttpRequest, slug: str) -> HttpResponse:
    """Request a report, which a run computes, and show the last report of every evaluator."""
    project = get_project(user=request.user, slug=slug, need="write" if request.method == "POST" else "read")
    sources = find_sources(project)
    wished = {"evaluator": request.GET.get("evaluator", "")}
    form = RobustnessForm(request.POST or None, initial=wished, names=reportable(project), has_wrong=sources.has_wrong)
    if request.method == "POST" and form.is_valid():
        try:
            run = start_robustness(project=project, user=request.user, options=RobustnessOptions(**form.cleaned_data))
        except EvalappError as error:
            form.add_error(None, error.detail)
        else:
            messages.success(request, _("%(run)s: queued.") % {"run": run.title})
            return redirect("run", project.slug, run.pk)
    context = {
        "project": project,
        "sources": sources,
        "kinds": [{"kind": kind, "head": _(HEADS[kind]), "what": _(text)} for kind, text in KINDS.items()],
        "missing": [{"kind": kind, "what": _(text)} for kind, text in sources.missing.items()],
        "reports": _reports(project),
        "under_way": reports_under_way(project),
        "form": form,
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/evaluators/robustness.html", context, status=422 if form.errors else 200)


def _reports(project: Project) -> list[dict[str, Any]]:
    result = []
    for run in latest_reports(project):
        by_kind = {row["kind"]: row for row in run.result["rows"]}
        result.append({**run.result, "run": run, "cells": [by_kind[kind] for kind in KINDS if kind in by_kind]})
    return result
