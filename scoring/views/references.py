"""Pages of reference sets: list, one set with its traces, comparison, merging, deleting, automatic selection, and
reliability curves, which a run computes."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import EvalappError, NotThere
from evalapp.common.forms import read_number
from evalapp.common.models import Run
from evalapp.common.pages import page, project_page
from evalapp.common.queue import queue_has_worker
from scoring.forms.fields import list_reference_sets
from scoring.forms.references import CurvesForm, MergeForm, ReferenceSelectionForm, initial_from
from scoring.plots import drawing
from scoring.plots.drawing import Picture

from ..selectors.reference_sets import (
    BOTH,
    compare_sets,
    count_differences,
    difference_page,
    get_set,
    item_page,
    list_sets,
    reference_rows,
)
from ..selectors.reports import CURVES, PANELS, latest_curves
from ..selectors.runs import find_numbered_run
from ..selectors.training import list_reference_judges, reference_judge_under_way
from ..services.reference_selection import PREVIEW_ITEMS, start_preview, start_reference_selection
from ..services.reference_sets import delete_set, merge_sets
from ..services.reports import start_curves
from .starting import open_run, start_from_form, start_run


def plan_curves(panel: str, result: Mapping[str, Any]) -> Picture:
    """Return the picture of a panel of the reliability curves."""
    lines, change = result["lines"], _("%(name)s: from %(first).3f to %(last).3f")
    words = "; ".join(
        change % {"name": line["name"], "first": line["points"][0]["value"], "last": line["points"][-1]["value"]}
        for line in lines
    )
    title = _(PANELS[panel]) if panel in PANELS else panel
    axes = (str(result["axes"][0]), f"{result['axes'][1]}, 95 %")
    paint = partial(drawing.draw_lines, lines, title=title, description=words, axes=axes)
    return Picture(partial(drawing.size_lines, len(lines)), paint, words)


@project_page(GET="read")
def reference_set_list(request: HttpRequest, project: Project) -> HttpResponse:
    """The reference sets of a project, with what depends on each."""
    rows = list_sets(project)
    context = {
        "project": project,
        "rows": rows,
        "is_empty": not any(row.n_references for row in rows),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/references/list.html", context)


@project_page(GET="read")
def reference_set(request: HttpRequest, project: Project, name: str) -> HttpResponse:
    """A reference set item by item, with the steps of its selection."""
    row = get_set(project, name)
    key = request.GET.get("item", "").strip()
    shown, items = item_page(row.set, cursor=request.GET.get("cursor", ""), key=key)
    context = {
        "project": project,
        "row": row,
        "key": key,
        "page": shown,
        "items": items,
        "others": [other for other in list_reference_sets(project) if other != name],
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/references/show.html", context)


@project_page(GET="read")
def reference_set_file(request: HttpRequest, project: Project, name: str) -> StreamingHttpResponse:
    """Stream the set as `references.jsonl`."""
    row = get_set(project, name)

    def lines() -> Iterator[str]:
        for reference in reference_rows(row.set):
            yield json.dumps(reference, ensure_ascii=False) + "\n"

    response = StreamingHttpResponse(lines(), content_type="application/x-ndjson; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{project.slug}-{name}-references.jsonl"'
    return response


@project_page(GET="read")
def compare(request: HttpRequest, project: Project) -> HttpResponse:
    """Two reference sets and the items on which they differ."""
    names = list_reference_sets(project)
    first = request.GET.get("first") or names[0]
    second = request.GET.get("second") or next((name for name in names if name != first), first)
    result = compare_sets(project, first, second)
    counts = count_differences(result)
    in_both = counts[BOTH]
    filled = next((part for part, count in counts.items() if count != 0), BOTH)
    part = request.GET["part"] if request.GET.get("part") in counts else filled
    shown, rows = difference_page(result, cursor=request.GET.get("cursor", ""), part=part)
    context = {
        "project": project,
        "found": result,
        "names": names,
        "page": shown,
        "rows": rows,
        "part": part,
        "counts": counts,
        "unchanged": None if in_both is None else result.items_both - in_both,
        "effect": urlencode({"set": [first, second], "first": first}, doseq=True),
    }
    return page(request, "scoring/references/compare.html", context)


@project_page(GET="write", POST="write")
def merge(request: HttpRequest, project: Project) -> HttpResponse:
    """Merge reference sets into a new one."""
    form = MergeForm(request.POST or None, project=project, initial={"names": request.GET.getlist("set")})
    if request.method == "POST" and form.is_valid():
        try:
            given = form.cleaned_data
            made = merge_sets(project=project, user=request.user, names=given["names"], into=given["into"])
        except EvalappError as error:
            placed = [fault for fault in error.faults if fault.field == "into"]
            form.add_error("into" if placed else None, error.detail)
        else:
            text = _("%(name)s has the references of %(sets)s.")
            messages.success(request, text % {"name": made.name, "sets": ", ".join(given["names"])})
            return redirect("scoring:reference-set", project.slug, made.name)
    context = {"project": project, "form": form}
    return page(request, "scoring/references/merge.html", context, status=422 if form.errors else 200)


@project_page(GET="write", POST="write")
def delete(request: HttpRequest, project: Project, name: str) -> HttpResponse:
    """Delete a reference set, on request with the scores that use it."""
    row = get_set(project, name)
    if request.method == "POST":
        try:
            delete_set(
                project=project, user=request.user, name=name, with_scores=request.POST.get("with_scores") == "on"
            )
        except EvalappError as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, _("%(name)s deleted.") % {"name": name})
            return redirect("scoring:reference-sets", project.slug)
    return page(request, "scoring/references/delete.html", {"project": project, "row": row})


@project_page(GET="write", POST="write")
def select_references(request: HttpRequest, project: Project) -> HttpResponse:
    """A form with two buttons: preview on five items, or start the run."""
    shown = find_numbered_run(project, "preview-references", request.GET.get("preview", ""))
    initial = initial_from(shown.params) if shown else None
    form = ReferenceSelectionForm(request.POST or None, project=project, initial=initial)
    is_preview = request.POST.get("do") == "preview"
    run = start_from_form(request, project, form, start_preview if is_preview else start_reference_selection)
    if run is not None and is_preview:
        return redirect(f"{reverse('scoring:select-references', args=[project.slug])}?preview={run.pk}#preview")
    if run is not None:
        return open_run(request, run)
    context = {
        "project": project,
        "form": form,
        "shown": shown,
        "waiting": shown is not None and shown.is_active,
        "result": shown.result if shown else None,
        "tried": min(shown.params.get("sample") or PREVIEW_ITEMS, PREVIEW_ITEMS) if shown else 0,
        "has_worker": shown is None or not shown.is_active or queue_has_worker(shown.queue),
        "has_judge": list_reference_judges(project).exists(),
        "training": reference_judge_under_way(project),
    }
    status = 422 if form.errors else 200
    return page(request, "scoring/references/select.html", context, fragment="preview", status=status)


@project_page(GET="read", POST="write")
def reliability_curves(request: HttpRequest, project: Project) -> HttpResponse:
    """Reliability curves, which a run computes, and the form that starts it."""
    form = CurvesForm(request.POST or None, project=project)
    if response := start_run(request, project, form, start_curves):
        return response
    shown = _find_curves(project, request.GET.get("run", ""))
    context = {
        "project": project,
        "form": form,
        "runs": latest_curves(project),
        "shown": shown,
        "found": shown.result if shown else None,
        "panels": [(name, _(text)) for name, text in PANELS.items() if shown and shown.result["panels"].get(name)],
        "pictures": {
            name: plan_curves(name, panel)
            for name, panel in (shown.result["panels"] if shown else {}).items()
            if panel and panel["lines"]
        },
        "has_judge": list_reference_judges(project).exists(),
        "training": reference_judge_under_way(project),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/references/curves.html", context, status=422 if form.errors else 200)


def _find_curves(project: Project, number: str) -> Run | None:
    """Return the run of that number, or the last one with curves."""
    if read_number(number) is None:
        return next(iter(latest_curves(project)), None)
    run = find_numbered_run(project, CURVES, number)
    if run is None or not run.result:
        raise NotThere(_("This run has no curves."))
    return run
