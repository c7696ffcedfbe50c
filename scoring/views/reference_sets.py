"""Pages of reference sets: list, one set with its traces, comparison, merging, deleting."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import EvalappError
from evalapp.common.pages import page
from scoring.forms.fields import list_reference_sets

from ..selectors.reference_sets import compare_sets, difference_page, get_set, item_page, list_sets, reference_rows
from ..services.reference_sets import delete_set, merge_sets


@login_required
@require_GET
def reference_set_list(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    context = {
        "project": project,
        "rows": list_sets(project),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/references/list.html", context)


@login_required
@require_GET
def reference_set(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    row = get_set(project, name)
    key = request.GET.get("item", "").strip()
    found, items = item_page(row.set, cursor=request.GET.get("cursor", ""), key=key)
    context = {
        "project": project,
        "row": row,
        "key": key,
        "page": found,
        "items": items,
        "others": [other for other in list_reference_sets(project) if other != name],
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/references/show.html", context)


@login_required
@require_GET
def reference_set_file(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    """Stream the set as `references.jsonl`."""
    project = get_project(user=request.user, slug=slug, need="read")
    row = get_set(project, name)

    def lines() -> Iterator[str]:
        for found in reference_rows(row.set):
            yield json.dumps(found, ensure_ascii=False) + "\n"

    response = StreamingHttpResponse(lines(), content_type="application/x-ndjson; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{project.slug}-{name}-references.jsonl"'
    return response


@login_required
@require_GET
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    names = list_reference_sets(project)
    first = request.GET.get("first") or names[0]
    second = request.GET.get("second") or next((name for name in names if name != first), first)
    result = compare_sets(project, first, second)
    shown, rows = difference_page(result, cursor=request.GET.get("cursor", ""))
    context = {"project": project, "found": result, "names": names, "page": shown, "rows": rows}
    return page(request, "scoring/references/compare.html", context)


class MergeForm(forms.Form):
    names = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Sets"),
        help_text=gettext_lazy("Merged in this order, without duplicates."),
    )  # fmt: skip
    into = forms.SlugField(
        max_length=63,
        label=gettext_lazy("Name of the new set"),
        help_text=gettext_lazy("Lower-case letters, digits, hyphens. The merged sets are kept."),
    )

    def __init__(self, *args: object, project: Project, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["names"].choices = [(name, name) for name in list_reference_sets(project)]  # type: ignore[attr-defined]


@login_required
@require_http_methods(["GET", "POST"])
def merge(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="write")
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


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="write")
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
