"""The page of robustness reports: scores of evaluators by kind of text."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.pages import page, project_page
from scoring.forms.fields import number_field, set_choices

from ..selectors.reports import ROBUSTNESS, latest_reports, reportable
from ..selectors.runs import list_active_runs
from ..selectors.written_kinds import KINDS, find_sources
from ..services.reports import RobustnessOptions, start_robustness
from .starting import start_run

#: Column heads of the kinds.
HEADS = {
    "MGE": gettext_noop("Machine"),
    "HWE": gettext_noop("Unconstrained"),
    "LDHWE": gettext_noop("Other words"),
    "HWEBQ": gettext_noop("Better"),
    "AE": gettext_noop("Wrong"),
}


class RobustnessForm(forms.Form):
    evaluator = forms.ChoiceField(label=gettext_lazy("Evaluator"))
    sample = number_field(
        RobustnessOptions, "sample", gettext_lazy("Maximum items"),
        gettext_lazy("Sampled from the items that have wrong answers."),
    )  # fmt: skip

    def __init__(self, *args: Any, names: list[str], has_wrong: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self, evaluator=names)
        if not has_wrong:
            del self.fields["sample"]

    def as_options(self) -> RobustnessOptions:
        return RobustnessOptions(**self.cleaned_data)


@project_page(GET="read", POST="write")
def robustness(request: HttpRequest, project: Project) -> HttpResponse:
    """Request a report, which a run computes, and show the last report of every evaluator."""
    sources = find_sources(project)
    wished = {"evaluator": request.GET.get("evaluator", "")}
    form = RobustnessForm(request.POST or None, initial=wished, names=reportable(project), has_wrong=sources.has_wrong)
    if response := start_run(request, project, form, start_robustness):
        return response
    context = {
        "project": project,
        "sources": sources,
        "kinds": [{"kind": kind, "head": _(HEADS[kind]), "what": _(text)} for kind, text in KINDS.items()],
        "missing": [{"kind": kind, "what": _(text)} for kind, text in sources.missing.items()],
        "reports": _reports(project),
        "under_way": list(list_active_runs(project, ROBUSTNESS)),
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
