"""Planning pages of judging and writing campaigns: new, edit, change while people work, open, pause, resume, close,
delete."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from annotation.models import Campaign, WrittenReference
from annotation.selectors.campaigns_watch import watch_campaign
from annotation.services import campaigns as services
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, Conflict, EvalappError
from evalapp.common.forms import read_number
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page, project_page

from .campaign_pages import CampaignPages
from .invitations import invite_people
from .plan_forms import PlanEditor

#: Longer guidelines are cut for the preview.
PREVIEWED = 100_000
DONE_WORDS = {
    "open": gettext_lazy("The campaign is open."),
    "pause": gettext_lazy("Paused. Annotators get no new items; open ones can still be submitted."),
    "resume": gettext_lazy("The campaign is open again."),
    "close": gettext_lazy("The campaign is closed. Its results are in leaderboards and exports."),
}


@project_page(GET="write", POST="write")
def campaign_new(request: HttpRequest, project: Project, kind: CampaignPages) -> HttpResponse:
    """A new draft; `?from=` copies the plan of another campaign."""
    if request.method == "POST":
        return _save(request, project, None, kind)
    plan = None
    if (source := read_number(request.GET.get("from", ""))) is not None:
        copied = kind.find(request, project.slug, source, "write")
        plan = {**_get_plan(copied), "name": _("%(name)s (copy)") % {"name": copied.name}}
    return _show_form(request, project, None, kind, kind.editor(project, plan=plan))


@require_http_methods(["GET", "POST"])
def campaign_edit(request: HttpRequest, slug: str, pk: int, kind: CampaignPages) -> HttpResponse:
    """Any part of a draft; after opening only what does not affect the answers."""
    campaign = kind.find(request, slug, pk, "write")
    if campaign.state != Campaign.State.DRAFT:
        return _edit_running(request, campaign, kind)
    if request.method == "POST":
        return _save(request, campaign.project, campaign, kind)
    editor = kind.editor(campaign.project, plan=_get_plan(campaign))
    return _show_form(request, campaign.project, campaign, kind, editor)


def _get_plan(campaign: Any) -> dict[str, Any]:
    return services.get_work(campaign).current_plan(campaign)


def _show_form(
    request: HttpRequest, project: Project, campaign: Any, kind: CampaignPages, editor: PlanEditor, status: int = 200,
    **more: Any,
) -> HttpResponse:  # fmt: skip
    context = {"project": project, "campaign": campaign, **editor.get_context(), **more}
    return page(request, f"annotation/{kind.templates}/form.html", context, status=status)


def _save(request: HttpRequest, project: Project, campaign: Any, kind: CampaignPages) -> HttpResponse:
    """Save the plan, or show the form again: with another row, a preview, or error messages."""
    editor = kind.editor(project, data=request.POST)
    action = request.POST.get("do", "")
    if action in ("preview", "add-aspect", "estimate"):
        editor.form.errors.clear()  # nothing is checked before the plan is saved
        more = editor.estimate() if action == "estimate" else {}
        more["guidelines_preview"] = _preview_guidelines(request) if action == "preview" else None
        return _show_form(request, project, campaign, kind, editor, unchecked=True, **more)
    if editor.is_valid():
        try:
            stored = _store(request, project, campaign, editor)
        except EvalappError as error:
            editor.add_faults(error.faults, error.detail)
        else:
            messages.success(request, _("The draft is saved. Check it, then open the campaign."))
            return redirect(f"annotation:{kind.name}", project.slug, stored.pk)
    return _show_form(request, project, campaign, kind, editor, status=422)


def _store(request: HttpRequest, project: Project, campaign: Any, editor: PlanEditor) -> Any:
    if campaign is not None:
        changes = editor.as_changes(campaign)
        return services.update_campaign(campaign=campaign, user=request.user, changes=changes)
    plan = editor.as_plan()
    plan["slug"] = editor.make_slug(plan["name"])
    return editor.create(project=project, user=request.user, plan=plan)


def _edit_running(request: HttpRequest, campaign: Any, kind: CampaignPages) -> HttpResponse:
    preview = None
    if request.method == "POST":
        form = kind.running_form(request.POST, campaign=campaign)
        if request.POST.get("do") == "preview":
            preview = _preview_guidelines(request)
            form.errors.clear()
        elif form.is_valid():
            try:
                services.update_campaign(campaign=campaign, user=request.user, changes=form.as_changes())
            except EvalappError as error:
                form.add_faults(error.faults, error.detail)
            else:
                messages.success(request, _("Saved. Annotators see the changes with their next item."))
                return redirect(f"annotation:{kind.name}", campaign.project.slug, campaign.pk)
    else:
        initial = kind.editor.form_class.read_initial(_get_plan(campaign))
        form = kind.running_form(initial=initial, campaign=campaign)
    status = 422 if form.errors else 200
    return kind.show(request, "edit", campaign, form=form, guidelines_preview=preview, status=status)


def _preview_guidelines(request: HttpRequest) -> str:
    return render_markdown(request.POST.get("guidelines", "")[:PREVIEWED])


@require_POST
def guidelines_preview(request: HttpRequest, slug: str) -> HttpResponse:
    """The guidelines as annotators will see them, requested by the form while they are written."""
    get_project(user=request.user, slug=slug, need="write")
    context = {"guidelines_preview": _preview_guidelines(request)}
    return page(request, "annotation/campaigns/form/_preview.html", context)


@require_POST
def campaign_estimate(request: HttpRequest, slug: str, kind: CampaignPages) -> HttpResponse:
    """The estimate next to the form of a plan, requested while it is filled in."""
    project = get_project(user=request.user, slug=slug, need="write")
    context = {"project": project, **kind.editor(project, data=request.POST).estimate()}
    return page(request, f"annotation/{kind.templates}/form/_estimate.html", context)


@require_http_methods(["GET", "POST"])
def campaign_move(request: HttpRequest, slug: str, pk: int, move: str, kind: CampaignPages) -> HttpResponse:
    """Open, pause, resume or close. Closing asks for confirmation."""
    if move not in DONE_WORDS:
        raise Http404
    campaign = kind.find(request, slug, pk, "write")
    if request.method == "GET":
        if move != "close":
            return redirect(f"annotation:{kind.name}", slug, pk)
        return kind.show(request, "close", campaign, **_count_answers(campaign))
    try:
        moved = getattr(services, f"{move}_campaign")(campaign=campaign, user=request.user)
    except (Conflict, BadInput) as error:
        faults = " ".join(fault.message for fault in error.faults if fault.message != error.detail)
        messages.error(request, f"{error.detail} {faults}".strip())
    else:
        if move == "open" and moved.state == Campaign.State.DRAFT:
            messages.info(request, _("The texts are being prepared. The campaign opens when they are ready."))
        else:
            messages.success(request, DONE_WORDS[move])
        invite = request.POST.get("invite", "") if move == "open" else ""
        people = read_number(invite)
        if invite and people is None:
            messages.warning(request, _("No link was made: the number of people must be a whole number."))
        if people:
            return invite_people(request, kind.find(request, slug, pk, "write"), kind, people)
    return redirect(f"annotation:{kind.name}", slug, pk)


def _count_answers(campaign: Any) -> dict[str, Any]:
    """The amount of work so far, for the confirmation page."""
    if isinstance(campaign, Campaign):
        return {"progress": watch_campaign(campaign, with_figures=False)}
    return {"written": campaign.written.filter(state=WrittenReference.State.SHOWN).count()}


@require_http_methods(["GET", "POST"])
def campaign_delete(request: HttpRequest, slug: str, pk: int, kind: CampaignPages) -> HttpResponse:
    campaign = kind.find(request, slug, pk, "write")
    if request.method == "GET":
        return kind.show(request, "delete", campaign)
    try:
        services.delete_campaign(campaign=campaign, user=request.user)
    except Conflict as error:
        messages.error(request, error.detail)
        return redirect(f"annotation:{kind.name}", slug, pk)
    messages.success(request, _("“%(name)s” is deleted.") % {"name": campaign.name})
    return redirect("annotation:campaign-list", slug)
