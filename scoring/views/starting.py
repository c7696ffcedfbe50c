"""Start runs from the forms of pages."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError
from evalapp.common.models import Run
from evalapp.stored_texts import translate_stored
from scoring.forms.fields import add_faults


def start_run(request: HttpRequest, project: Project, form: Any, start: Callable[..., Run]) -> HttpResponse | None:
    """Start the run that a valid form requests, and redirect to its page; None if there is none, or if the form has
    errors."""
    run = start_from_form(request, project, form, start)
    return None if run is None else open_run(request, run)


def start_from_form(request: HttpRequest, project: Project, form: Any, start: Callable[..., Run]) -> Run | None:
    """Return the run that a valid form requests; errors of `start` are added to the form."""
    if request.method != "POST" or not form.is_valid():
        return None
    try:
        return start(project=project, user=request.user, options=form.as_options())
    except EvalappError as error:
        add_faults(form, error)
        return None


def open_run(request: HttpRequest, run: Run) -> HttpResponse:
    """Redirect to the page of a run that was queued."""
    messages.success(request, _("%(run)s: queued.") % {"run": translate_stored(run.title)})
    return redirect("run", run.project.slug, run.pk)
