"""The researcher's pages of campaigns: list, plan, watch, open, pause, resume, close, delete, preview. Practice and
control texts are in `campaign_checks`, invitations in `invitations`, lists of answers in `campaign_lists`."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.models import Campaign, Unit
from annotation.selectors.campaigns import campaign_plan, list_campaigns, plan_choices
from annotation.selectors.campaigns_watch import CampaignProgress, latest_judgements, watch_campaign
from annotation.selectors.judging_sheet import make_sheet
from annotation.selectors.writing import list_writing
from annotation.services import campaigns as services
from annotation.services.campaigns_preview import preview_assignment
from annotation.services.campaigns_units import estimate_units
from annotation.services.judging import Progress
from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR, Need
from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import BadInput, Conflict, EvalappError, NotThere
from evalapp.common.forms import number_in
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page
from evalapp.common.pagination import keyset

from .campaign_forms import (
    CampaignForm,
    RunningForm,
    add_plan_faults,
    aspect_rows,
    aspects_plan,
    free_slug,
    initial_from_plan,
    rows_from_plan,
    rows_from_project,
)
from .campaign_tables import answer_lines, coverage

PAGE_SIZE = 50
LATEST_SHOWN = 8
#: Writing campaigns on the first page of the list, the newest of them.
WRITING_SHOWN = 100
#: Up to so many judgements wanted, agreement and coverage are part of the watch page itself.
FIGURES_AT_ONCE = 5_000
MOVES = ("open", "pause", "resume", "close")
DONE_WORDS = {
    "open": "The campaign is open. Invite people now.",
    "pause": "Paused. Nobody gets a new text; what is open can still be sent.",
    "resume": "Open again.",
    "close": "Closed. The answers are in the leaderboards and exports.",
}


def get_parts(request: HttpRequest, slug: str, pk: int, need: Need = "read") -> tuple[Project, Campaign]:
    """Project and campaign, with permission; the campaign must be of this project."""
    project = get_project(user=request.user, slug=slug, need=need)
    campaign = Campaign.objects.select_related("opening").filter(project=project, pk=pk).first()
    if campaign is None:
        raise NotThere("There is no such campaign in this project.")
    campaign.project = project
    return project, campaign


def may_write(request: HttpRequest, project: Project) -> bool:
    return bool(request.user.is_superuser) or project.role in ROLES_FOR["write"]  # type: ignore[union-attr,attr-defined]


@login_required
@require_safe
def campaign_list(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    found = keyset(
        list_campaigns(project=project), order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE
    )
    context = {"project": project, "page": found, "campaigns": found.rows, "may_write": may_write(request, project)}
    if "cursor" not in request.GET:
        context["writing"] = list(list_writing(project=project)[:WRITING_SHOWN])
    return page(request, "annotation/campaigns/list.html", context)


# ---- planning ---------------------------------------------------------------------------------------------


@login_required
@require_http_methods(["GET", "POST"])
def campaign_new(request: HttpRequest, slug: str) -> HttpResponse:
    """A new draft; `?from=` starts from the plan of another campaign."""
    project = get_project(user=request.user, slug=slug, need="write")
    choices = plan_choices(project=project)
    if request.method == "POST":
        return _save(request, project, None, choices)
    copied = request.GET.get("from", "")
    if (number := number_in(copied)) is not None:
        source = get_parts(request, slug, number, "write")[1]
        plan = campaign_plan(source)
        initial = {**initial_from_plan(plan), "name": f"{source.name} (copy)"}
        form = CampaignForm(initial=initial, systems=choices["systems"])
        rows = aspect_rows(initial=rows_from_plan(plan))
    else:
        form = CampaignForm(systems=choices["systems"])
        rows = aspect_rows(initial=rows_from_project(choices["aspects"]))
    return _form_page(request, project, None, choices, form, rows)


@login_required
@require_http_methods(["GET", "POST"])
def campaign_edit(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A draft in any part; later only what does not touch what was judged."""
    project, campaign = get_parts(request, slug, pk, "write")
    if campaign.state != Campaign.State.DRAFT:
        return _edit_running(request, project, campaign)
    choices = plan_choices(project=project)
    if request.method == "POST":
        return _save(request, project, campaign, choices)
    plan = campaign_plan(campaign)
    form = CampaignForm(initial=initial_from_plan(plan), systems=choices["systems"])
    return _form_page(request, project, campaign, choices, form, aspect_rows(initial=rows_from_plan(plan)))


def _form_page(
    request: HttpRequest, project: Project, campaign: Campaign | None, choices: dict, form: CampaignForm, rows: Any,
    status: int = 200, **more: Any,
) -> HttpResponse:  # fmt: skip
    context = {"project": project, "campaign": campaign, "form": form, "rows": rows, **choices, **more}
    return page(request, "annotation/campaigns/form.html", context, status=status)


def _save(request: HttpRequest, project: Project, campaign: Campaign | None, choices: dict) -> HttpResponse:
    """Store what was typed, or show it again: with a further row, a preview, or what is wrong."""
    wanted = request.POST.get("do", "")
    form = CampaignForm(request.POST, systems=choices["systems"])
    if wanted == "add-aspect":
        rows = aspect_rows(request.POST, add=1)
        return _form_page(request, project, campaign, choices, _unchecked(form), rows, unchecked=True)
    rows = aspect_rows(request.POST)
    if wanted == "preview":
        preview = render_markdown(request.POST.get("guidelines", "")[:100_000])
        return _form_page(
            request, project, campaign, choices, _unchecked(form), rows, unchecked=True, guidelines_preview=preview
        )
    if form.is_valid() & rows.is_valid():
        plan = form.as_plan()
        plan["aspects"] = aspects_plan(rows, plan["kind"])
        try:
            stored = _store(request, project, campaign, plan)
        except EvalappError as error:
            add_plan_faults(form, rows, error.faults, error.detail)
        else:
            messages.success(request, "The draft is stored. Look at the estimate, then open it.")
            return redirect("annotation:campaign", project.slug, stored.pk)
    return _form_page(request, project, campaign, choices, form, rows, status=422)


def _unchecked(form: CampaignForm) -> CampaignForm:
    """The same form with what was typed, before anything is found wrong with it."""
    form.errors.clear()
    return form


def _store(request: HttpRequest, project: Project, campaign: Campaign | None, plan: dict[str, Any]) -> Campaign:
    if campaign is None:
        taken = set(Campaign.objects.filter(project=project).values_list("slug", flat=True))
        plan["slug"] = free_slug(plan["name"], taken)
        return services.create_campaign(project=project, user=request.user, plan=plan)
    if plan["kind"] != "pairwise" and campaign.kind == Campaign.Kind.PAIRWISE:
        plan["pairs"] = None
    if plan["kind"] != campaign.kind:
        # What was expected of a rating says nothing about a comparison.
        plan |= {"practice": [], "controls": []}
    return services.update_campaign(campaign=campaign, user=request.user, changes=plan)


def _edit_running(request: HttpRequest, project: Project, campaign: Campaign) -> HttpResponse:
    preview = None
    if request.method == "POST":
        form = RunningForm(request.POST, campaign=campaign)
        if request.POST.get("do") == "preview":
            preview = render_markdown(request.POST.get("guidelines", "")[:100_000])
            form.errors.clear()
        elif form.is_valid():
            try:
                services.update_campaign(campaign=campaign, user=request.user, changes=form.as_changes(campaign))
            except EvalappError as error:
                form.add_error(None, error.detail)
            else:
                messages.success(request, "Stored. Who judges now sees it with the next text.")
                return redirect("annotation:campaign", project.slug, campaign.pk)
    else:
        form = RunningForm(initial=initial_from_plan(campaign_plan(campaign)), campaign=campaign)
    context = {"project": project, "campaign": campaign, "form": form, "guidelines_preview": preview}
    status = 422 if form.errors else 200
    return page(request, "annotation/campaigns/edit.html", context, status=status)


@login_required
@require_POST
def guidelines_preview(request: HttpRequest, slug: str) -> HttpResponse:
    """The guidelines as annotators will read them, for the form that asks while they are written."""
    get_project(user=request.user, slug=slug, need="write")
    text = request.POST.get("guidelines", "")[:100_000]
    context = {"guidelines_preview": render_markdown(text)}
    return page(request, "annotation/campaigns/form/_preview.html", context)


# ---- one campaign -----------------------------------------------------------------------------------------


@login_required
@require_safe
def campaign_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A draft with its estimate, or the watch page; its figures refresh themselves until the campaign closes."""
    project, campaign = get_parts(request, slug, pk)
    context: dict[str, Any] = {"project": project, "campaign": campaign, "may_write": may_write(request, project)}
    if campaign.state == Campaign.State.DRAFT:
        return page(request, "annotation/campaigns/draft.html", context | _draft(request, campaign), fragment="opening")
    if request.GET.get("part") == "figures":
        context |= _figures(watch_campaign(campaign))
        context["refresh"] = campaign.state == Campaign.State.OPEN
        return page(request, "annotation/campaigns/figures.html", context, fragment="figures")
    # Owners alone learn who stands behind a pseudonym, here as on the page of the members.
    context["names"] = can(user=request.user, project=project, need="manage")
    return page(request, "annotation/campaigns/show.html", context | _watch(campaign), fragment="live")


def _draft(request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
    units = estimate_units(campaign).units
    raw = request.GET.get("seconds", "")
    seconds = min(3600, max(1, int(raw))) if raw.isdecimal() and len(raw) < 6 else 15
    judgements = units * campaign.overlap
    limit = min(units, campaign.max_per_annotator or units)
    checks = campaign.units.exclude(kind=Unit.Kind.NORMAL).values_list("kind", flat=True)
    kinds = list(checks)
    return {
        "plan": campaign_plan(campaign),
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
        "opening": campaign.opening if campaign.opening_id else None,
        "estimate": {
            "units": units,
            "judgements": judgements,
            "seconds": seconds,
            "time": judgements * seconds,
            "people": max(campaign.overlap, -(-judgements // limit)) if limit else 0,
            "each": limit * seconds,
            "practice": kinds.count(Unit.Kind.PRACTICE),
            "controls": kinds.count(Unit.Kind.CONTROL),
        },
    }


def _figures(progress: CampaignProgress) -> dict[str, Any]:
    sided = progress.campaign.kind != Campaign.Kind.LIKERT
    return {"progress": progress, "coverage": coverage(progress), "sided": sided, "with_figures": True}


def _watch(campaign: Campaign) -> dict[str, Any]:
    """What refreshes every few seconds. Figures that take longer in a large campaign come by themselves."""
    small = campaign.unit_count * campaign.overlap <= FIGURES_AT_ONCE
    progress = watch_campaign(campaign, with_figures=small)
    latest = list(latest_judgements(campaign).order_by("-pk")[:LATEST_SHOWN])
    left = max(0, progress.slots - progress.done)
    return {
        **_figures(progress),
        "with_figures": small,
        "latest": answer_lines(latest, {row.user_id: row.pseudonym for row in progress.annotators}),
        "seconds_left": left * progress.median_seconds if progress.median_seconds else None,
        "live": campaign.state in (Campaign.State.OPEN, Campaign.State.PAUSED),
    }


@login_required
@require_http_methods(["GET", "POST"])
def campaign_move(request: HttpRequest, slug: str, pk: int, move: str) -> HttpResponse:
    """Open, pause, resume or close. Closing asks first."""
    if move not in MOVES:
        raise Http404
    project, campaign = get_parts(request, slug, pk, "write")
    if request.method == "GET":
        if move != "close":
            return redirect("annotation:campaign", slug, pk)
        progress = watch_campaign(campaign, with_figures=False)
        context = {"project": project, "campaign": campaign, "progress": progress}
        return page(request, "annotation/campaigns/close.html", context)
    try:
        moved = getattr(services, f"{move}_campaign")(campaign=campaign, user=request.user)
    except (Conflict, BadInput) as error:
        messages.error(request, error.detail)
        return redirect("annotation:campaign", slug, pk)
    if move == "open" and moved.state == Campaign.State.DRAFT:
        messages.info(request, "A worker makes the texts ready. The campaign opens by itself when it is done.")
    else:
        messages.success(request, DONE_WORDS[move])
    return redirect("annotation:campaign", slug, pk)


@login_required
@require_http_methods(["GET", "POST"])
def campaign_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    project, campaign = get_parts(request, slug, pk, "write")
    if request.method == "POST":
        try:
            services.delete_campaign(campaign=campaign, user=request.user)
        except Conflict as error:
            messages.error(request, error.detail)
            return redirect("annotation:campaign", slug, pk)
        messages.success(request, f"“{campaign.name}” is deleted.")
        return redirect("annotation:campaign-list", slug)
    return page(request, "annotation/campaigns/delete.html", {"project": project, "campaign": campaign})


@login_required
@require_safe
def campaign_preview(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The judging page as annotators see it, with a text of the plan; nothing can be sent."""
    from .judging import questions_of

    project, campaign = get_parts(request, slug, pk)
    sheet = make_sheet(campaign)
    form = sheet.shown_form()
    raw = request.GET.get("text", "0")
    number = int(raw) if raw.isdecimal() and len(raw) < 7 else 0
    context = {
        "project": project,
        "campaign": campaign,
        "sheet": sheet,
        "form": form,
        "shown": preview_assignment(campaign, number),
        "number": number,
        "questions": questions_of(form, {}, {}),
        "progress": Progress(0, sheet.goal, 0, 0.0, 0, sheet.practice_count),
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
        "preview": True,
    }
    return page(request, "annotation/campaigns/preview.html", context)
