"""The page of automatic selection of references: form, preview on a few items, start of the run."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import EvalappError
from evalapp.common.forms import read_number
from evalapp.common.models import Run
from evalapp.common.pages import page
from evalapp.common.queue import queue_has_worker
from scoring.forms.reference_selection import ReferenceSelectionForm, initial_from

from ..selectors.training import list_trained, ream_under_way
from ..services.reference_selection import PREVIEW_ITEMS, start_preview, start_reference_selection


@login_required
@require_http_methods(["GET", "POST"])
def select_references(request: HttpRequest, slug: str) -> HttpResponse:
    """A form with two buttons: preview on five items, or start the run."""
    project = get_project(user=request.user, slug=slug, need="write")
    shown = _find_preview(project, request.GET.get("preview", ""))
    initial = initial_from(shown.params) if shown else None
    form = ReferenceSelectionForm(request.POST or None, project=project, initial=initial)
    if request.method == "POST" and form.is_valid():
        trying = request.POST.get("do") == "preview"
        start = start_preview if trying else start_reference_selection
        try:
            run = start(project=project, user=request.user, options=form.as_options())
        except EvalappError as error:
            _add_faults(form, error)
        else:
            if trying:
                return redirect(f"{reverse('scoring:select-references', args=[slug])}?preview={run.pk}#preview")
            messages.success(request, _("%(run)s: queued.") % {"run": run.title})
            return redirect("run", project.slug, run.pk)
    context = {
        "project": project,
        "form": form,
        "shown": shown,
        "waiting": shown is not None and shown.is_active,
        "result": shown.result if shown else None,
        "tried": min(shown.params.get("sample") or PREVIEW_ITEMS, PREVIEW_ITEMS) if shown else 0,
        "has_worker": shown is None or not shown.is_active or queue_has_worker(shown.queue),
        "has_judge": list_trained(project).filter(name="ream").exists(),
        "training": ream_under_way(project),
    }
    status = 422 if form.errors else 200
    return page(request, "scoring/references/select.html", context, fragment="preview", status=status)


def _find_preview(project: Project, number: str) -> Run | None:
    wanted = read_number(number)
    if wanted is None:
        return None
    return Run.objects.filter(project=project, kind="preview-references", pk=wanted).first()


def _add_faults(form: Any, error: EvalappError) -> None:
    placed = False
    for fault in error.faults:
        if fault.field in form.fields:
            form.add_error(fault.field, fault.message)
            placed = True
    if not placed:
        form.add_error(None, error.detail)
