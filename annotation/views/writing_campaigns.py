"""The researcher's pages of writing campaigns: plan, draft, watch, open, pause, resume, close, delete. The lists
are in `writing_lists`, the preview in `writing_preview`, the annotator's page in `writing`."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from annotation.models import Item, ReferenceSet, WritingCampaign, WritingTask
from annotation.selectors import writing as selectors
from annotation.services import ports
from annotation.services import writing as services
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, Conflict, EvalappError
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page

from .campaign_forms import free_slug
from .campaigns import may_write
from .writing_forms import (
    ARM_NAMES,
    CONSTRAINTS,
    RunningWritingForm,
    WritingForm,
    add_writing_faults,
    writing_initial,
)
from .writing_lists import pseudonyms_of, written_lines
from .writing_parts import get_parts
from .writing_watch import watch_context

LATEST_SHOWN = 8
MOVES = ("open", "pause", "resume", "close")
DONE_WORDS = {
    "open": "The campaign is open. Invite people now.",
    "pause": "Paused. Nobody gets a new item; what is open can still be written.",
    "resume": "Open again.",
    "close": "Closed. The references are in their set, ready for every metric.",
}
TRAINING_NEEDS = (
    "It needs people's ratings of several systems' outputs, and two or more references for part of the items. With "
    "the small encoder a few hundred items take minutes on a laptop; a larger encoder wants a GPU. The train page says "
    "beforehand whether the data suffice."
)


# ---- planning ---------------------------------------------------------------------------------------------


def _choices(project: Project) -> dict[str, Any]:
    sets = ReferenceSet.objects.filter(project=project).order_by("pk").values_list("name", flat=True)
    return {
        "evaluators": ports.reliability_evaluators_of(project=project),
        "corpora": ports.corpora_of(project=project),
        "sets": [(name, name) for name in sets] or [("original", "original")],
    }


@login_required
@require_http_methods(["GET", "POST"])
def writing_new(request: HttpRequest, slug: str) -> HttpResponse:
    """A new draft; `?from=` starts from the plan of another writing campaign."""
    project = get_project(user=request.user, slug=slug, need="write")
    choices = _choices(project)
    if request.method == "POST":
        return _save(request, project, None, choices)
    copied = request.GET.get("from", "")
    initial: dict[str, Any] = {}
    if copied.isdecimal() and len(copied) < 10:
        source = get_parts(request, slug, int(copied), "write")[1]
        initial = {**writing_initial(selectors.writing_plan(source)), "name": f"{source.name} (copy)"}
    return _form_page(request, project, None, WritingForm(initial=initial, **choices))


@login_required
@require_http_methods(["GET", "POST"])
def writing_edit(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A draft in any part; later only what does not touch what was written."""
    project, campaign = get_parts(request, slug, pk, "write")
    if campaign.state != WritingCampaign.State.DRAFT:
        return _edit_running(request, project, campaign)
    choices = _choices(project)
    if request.method == "POST":
        return _save(request, project, campaign, choices)
    form = WritingForm(initial=writing_initial(selectors.writing_plan(campaign)), **choices)
    return _form_page(request, project, campaign, form)


def _form_page(
    request: HttpRequest, project: Project, campaign: WritingCampaign | None, form: WritingForm, status: int = 200,
    **more: Any,
) -> HttpResponse:  # fmt: skip
    context = {
        "project": project,
        "campaign": campaign,
        "form": form,
        "has_items": Item.objects.filter(project=project).exists(),
        "training_needs": TRAINING_NEEDS,
        **more,
    }
    return page(request, "annotation/writing/form.html", context, status=status)


def _save(request: HttpRequest, project: Project, campaign: WritingCampaign | None, choices: dict) -> HttpResponse:
    """Store what was typed, or show it again: with a preview, or what is wrong."""
    form = WritingForm(request.POST, **choices)
    if request.POST.get("do") == "preview":
        preview = render_markdown(request.POST.get("guidelines", "")[:100_000])
        form.errors.clear()
        return _form_page(request, project, campaign, form, unchecked=True, guidelines_preview=preview)
    if form.is_valid():
        try:
            stored = _store(request, project, campaign, form.as_plan())
        except EvalappError as error:
            add_writing_faults(form, error.faults, error.detail)
        else:
            messages.success(request, "The draft is stored. Look it over, then open it.")
            return redirect("annotation:writing", project.slug, stored.pk)
    return _form_page(request, project, campaign, form, status=422)


def _store(
    request: HttpRequest, project: Project, campaign: WritingCampaign | None, plan: dict[str, Any]
) -> WritingCampaign:
    if campaign is None:
        taken = set(WritingCampaign.objects.filter(project=project).values_list("slug", flat=True))
        taken |= set(ReferenceSet.objects.filter(project=project).values_list("name", flat=True))
        plan["slug"] = free_slug(plan["name"][:36], taken)
        return services.create_writing(user=request.user, project=project, plan=plan)
    return services.update_writing(user=request.user, campaign=campaign, changes=plan)


def _edit_running(request: HttpRequest, project: Project, campaign: WritingCampaign) -> HttpResponse:
    if request.method == "POST":
        form = RunningWritingForm(request.POST)
        if form.is_valid():
            try:
                services.update_writing(user=request.user, campaign=campaign, changes=form.as_changes())
            except EvalappError as error:
                add_writing_faults(form, error.faults, error.detail)
            else:
                messages.success(request, "Stored. Who writes now sees it with the next item.")
                return redirect("annotation:writing", project.slug, campaign.pk)
    else:
        form = RunningWritingForm(initial=writing_initial(selectors.writing_plan(campaign)))
    context = {"project": project, "campaign": campaign, "form": form}
    return page(request, "annotation/writing/edit.html", context, status=422 if form.errors else 200)


# ---- one campaign -----------------------------------------------------------------------------------------


@login_required
@require_safe
def writing_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A draft with what it asks for, or the watch page; its figures refresh themselves until the campaign closes."""
    project, campaign = get_parts(request, slug, pk)
    context: dict[str, Any] = {"project": project, "campaign": campaign, "may_write": may_write(request, project)}
    if campaign.state == WritingCampaign.State.DRAFT:
        return page(request, "annotation/writing/draft.html", context | _draft(campaign))
    latest = list(selectors.list_written(campaign=campaign)[:LATEST_SHOWN])
    context |= watch_context(request.user, campaign)
    skips = campaign.tasks.filter(state=WritingTask.State.SKIPPED).exclude(skip_reason="")
    context |= {
        "latest": written_lines(latest, pseudonyms_of(campaign)),
        "skips": list(skips.select_related("unit__item").order_by("-closed_at")[:LATEST_SHOWN]),
        "flags": campaign.flags.filter(resolved_at=None).count(),
        "live": campaign.state in (WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED),
    }
    return page(request, "annotation/writing/show.html", context, fragment="live")


def _draft(campaign: WritingCampaign) -> dict[str, Any]:
    plan = selectors.writing_plan(campaign)
    options = plan["options"]
    return {
        "plan": plan,
        "options": options,
        "estimate": services.estimate_writing(campaign=campaign),
        "problems": services.list_opening_problems(campaign=campaign),
        "arms": [ARM_NAMES[arm] for arm in options["arms"]],
        "constraint": dict(CONSTRAINTS).get(options["constraint"], ""),
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
    }


# ---- moves ------------------------------------------------------------------------------------------------


@login_required
@require_http_methods(["GET", "POST"])
def writing_move(request: HttpRequest, slug: str, pk: int, move: str) -> HttpResponse:
    """Open, pause, resume or close. Closing asks first."""
    if move not in MOVES:
        raise Http404
    project, campaign = get_parts(request, slug, pk, "write")
    if request.method == "GET":
        if move != "close":
            return redirect("annotation:writing", slug, pk)
        written = selectors.list_written(campaign=campaign).filter(state="shown").count()
        return page(
            request, "annotation/writing/close.html", {"project": project, "campaign": campaign, "written": written}
        )
    try:
        getattr(services, f"{move}_writing")(user=request.user, campaign=campaign)
    except (Conflict, BadInput) as error:
        faults = " ".join(fault.message for fault in error.faults if fault.message != error.detail)
        messages.error(request, f"{error.detail} {faults}".strip())
    else:
        messages.success(request, DONE_WORDS[move])
    return redirect("annotation:writing", slug, pk)


@login_required
@require_http_methods(["GET", "POST"])
def writing_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    project, campaign = get_parts(request, slug, pk, "write")
    if request.method == "POST":
        try:
            services.delete_writing(user=request.user, campaign=campaign)
        except Conflict as error:
            messages.error(request, error.detail)
            return redirect("annotation:writing", slug, pk)
        messages.success(request, "The campaign is deleted.")
        return redirect("annotation:campaign-list", slug)
    return page(request, "annotation/writing/delete.html", {"project": project, "campaign": campaign})
