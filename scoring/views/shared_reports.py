"""Reports for people who do not sign in: the list, a new one, and the page and the PDF by link."""

from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from annotation.selectors.presence import has_outputs
from evalapp.accounts import limits
from evalapp.accounts.forms import submit
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import NotThere
from evalapp.common.pages import page, project_page
from scoring.boards.render.report import build_document

from ..downloads import send_report
from ..forms.shared_reports import ReportForm
from ..models import SharedReport
from ..selectors.shared_reports import find_shared, get_report, list_reports
from ..services.shared_reports import create_report, open_report, revoke_report


@project_page(GET="read")
def report_list(request: HttpRequest, project: Project) -> HttpResponse:
    context = {
        "project": project,
        "rows": list(list_reports(project)[:100]),
        "manages": can(user=request.user, project=project, need="manage"),
    }
    return page(request, "scoring/reports/list.html", context)


@project_page(GET="manage", POST="manage")
def create(request: HttpRequest, project: Project) -> HttpResponse:
    """Create a report. Only the response to the POST contains the link."""
    form = ReportForm(request.POST or None, project=project)
    context: dict[str, Any] = {"project": project, "form": form, "is_empty": not has_outputs(project)}
    if created := submit(form, partial(create_report, project=project, user=request.user)):
        row, secret = created
        context |= {"row": row, "link": request.build_absolute_uri(reverse("scoring:shared-report", args=[secret]))}
    response = page(request, "scoring/reports/create.html", context, status=422 if form.errors else 200)
    response.headers["Cache-Control"] = "no-store"
    return response


@project_page(GET="read")
def report(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """Show a report to members as others see it, also after its link has ended."""
    row = get_report(project, pk)
    context = {"project": project, "row": row, "document": build_document(row.content)}
    return page(request, "scoring/reports/show.html", context)


@project_page(GET="read")
def report_pdf(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    return send_report(get_report(project, pk), project.slug)


@project_page(POST="manage")
def revoke(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    revoke_report(report=get_report(project, pk), user=request.user)
    messages.success(request, _("Link revoked. Members can still read the report."))
    return redirect("scoring:report-list", project.slug)


@login_not_required
@require_safe
def shared(request: HttpRequest, secret: str) -> HttpResponse:
    """Show a report to whoever has the link."""
    row = _open(request, secret)
    return render(request, "scoring/reports/shared.html", {"row": row, "document": build_document(row.content)})


@login_not_required
@require_safe
def shared_pdf(request: HttpRequest, secret: str) -> HttpResponse:
    return send_report(_open(request, secret), "report")


def _open(request: HttpRequest, secret: str) -> SharedReport:
    try:
        return open_report(secret=secret) if request.method == "GET" else find_shared(secret)
    except NotThere:
        # Only failures are limited, so that valid links keep working from the same address.
        limits.spend(limits.LINK_FAILURES, limits.client_ip(request))
        raise
