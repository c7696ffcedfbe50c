"""Pages of studies: choose and check one, start it, and read its tables."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import override

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import NotThere
from evalapp.common.models import Run
from evalapp.common.pages import page, project_page
from evalapp.common.queue import explain_waiting, queue_has_worker
from evalapp.common.selectors import find_run
from evalapp.stored_texts import translate_stored
from scoring.boards.render import study as render
from scoring.forms.studies import StudyForm, initial_from

from ..selectors.runs import find_numbered_run
from ..selectors.studies import CHECK, STUDY, list_studies
from ..services.studies import start_check, start_checked
from .starting import open_run, start_from_form

#: Number of studies that the page lists.
LATEST = 50


@project_page(GET="read", POST="write")
def study_list(request: HttpRequest, project: Project) -> HttpResponse:
    """Choose a study and check its cost; start it once it was checked."""
    check = find_numbered_run(project, CHECK, request.GET.get("check", ""))
    earlier = check or find_numbered_run(project, STUDY, request.GET.get("run", ""))
    form = StudyForm(request.POST or None, project=project, initial=initial_from(earlier.params) if earlier else None)
    run = start_from_form(request, project, form, start_check)
    if run is not None:
        return redirect(f"{reverse('scoring:study-list', args=[project.slug])}?check={run.pk}#check")
    context = {
        "project": project,
        "form": form,
        "check": check,
        "checking": check is not None and check.is_active,
        "waiting": explain_waiting(check) if check else "",
        "has_worker": check is None or not check.is_active or queue_has_worker(check.queue),
        "cost": check.result if check else None,
        "found": check.result if check else None,
        "left_out": _name_left_out(check.result) if check and check.result else [],
        "studies": list_studies(project)[:LATEST],
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/studies/list.html", context, fragment="check", status=422 if form.errors else 200)


def _name_left_out(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(render.name_label(label), reason) for label, reason in result["left_out"].items()]


@project_page(POST="write")
def study_start(request: HttpRequest, project: Project) -> HttpResponse:
    """Start the study that a check examined."""
    check = find_numbered_run(project, CHECK, request.POST.get("check", ""))
    if check is None:
        raise NotThere(_("There is no such check. Check the study first."))
    return open_run(request, start_checked(project=project, user=request.user, check=check))


@project_page(GET="read")
def study(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """The tables of a study with picture and LaTeX, or its state while it runs."""
    from scoring.ml.studies.kinds import get_kind

    run = find_study(request, project, pk)
    result = run.result
    context: dict[str, Any] = {"project": project, "run": run, "result": result}
    context["may_write"] = can(user=request.user, project=project, need="write")
    context["kind"] = get_kind(run.params["study"])
    context["title"] = render.name_kind(run.params["study"])
    if result:
        column = render.choose_column(result, request.GET.get("column", ""))
        context |= {
            "tables": [_show_table(table) for table in result["tables"]],
            "columns": [(name, render.name_label(name)) for name in render.list_columns(result)],
            "column": column,
            "picture": render.plan_picture(result, column),
            "remarks": render.list_remarks(result),
            "latex": render.as_latex(result),
        }
    return page(request, "scoring/studies/show.html", context)


def _show_table(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table with names and texts for the template."""
    letters = (table["items"] or {}).get("letters", {})
    return {
        "name": table["name"],
        "columns": [render.name_label(column) for column in table["columns"]],
        "rows": [
            {
                "label": render.name_label(row["label"]),
                "letters": letters.get(row["label"], ""),
                "cells": [_show_cell(row["cells"].get(column)) for column in table["columns"]],
            }
            for row in table["rows"]
        ],
        "has_letters": any(letters.values()),
        "tests": [
            {
                "column": render.name_label(column),
                "one_way": render.show_test(_("One-way ANOVA"), tests["one_way"]),
                "blocked": render.show_test(_("with seeds as blocks"), tests["blocked"]),
            }
            for column, tests in table["tests"].items()
        ],
        "compared": table["items"],
    }


def _show_cell(cell: dict[str, Any] | None) -> dict[str, Any]:
    """Return the figure of a cell, its spread and what the pointer shows."""
    if cell is None:
        return {"value": None, "spread": "", "title": ""}
    value, _space, spread = render.show_cell(cell).partition(" ")
    parts = [f"n {cell['n']:,}", translate_stored(cell["note"])]
    if cell["over"] == "seeds" and cell["low"] is not None:
        parts.insert(0, _("95 %% over seeds: %(low).3f to %(high).3f") % {"low": cell["low"], "high": cell["high"]})
    if (difference := cell.get("difference")) and difference["p_holm"] is not None:
        text = _("difference from the first row %(value)+.3f, p %(p).3f after Holm")
        parts.append(text % {"value": difference["value"], "p": difference["p_holm"]})
    return {"value": value, "spread": spread, "title": "; ".join(filter(None, parts))}


@project_page(GET="read")
def study_file(request: HttpRequest, project: Project, pk: int, ending: str) -> HttpResponse:
    """The tables of a study as CSV, JSON or LaTeX."""
    run = find_study(request, project, pk)
    if not run.result:
        raise NotThere(_("This study has no tables yet."))
    write, media_type = render.FORMATS[ending]
    with override(settings.LANGUAGE_CODE):  # files are the same for everybody
        response = HttpResponse(write(run.result), content_type=media_type)
    response.headers["Content-Disposition"] = (
        f'attachment; filename="{project.slug}-{run.params["study"]}-{run.pk}.{ending}"'
    )
    return response


def find_study(request: HttpRequest, project: Project, pk: int) -> Run:
    """Return a study of a project by the number of its run."""
    run = find_run(user=request.user, pk=pk, slug=project.slug)
    if run.kind != STUDY:
        raise NotThere(_("Run %(run)d is no study.") % {"run": pk})
    return run
