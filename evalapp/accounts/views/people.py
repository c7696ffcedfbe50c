"""Pages of the members of a project and its invitations."""

from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalapp.accounts.forms import InvitationForm, RoleForm, submit
from evalapp.accounts.links import make_invitation_link
from evalapp.accounts.models import Invitation, Project
from evalapp.accounts.roles import Role
from evalapp.accounts.selectors import can, get_member, list_invitations, list_members
from evalapp.accounts.services import (
    change_role,
    create_invitation,
    invite_by_mail,
    lift_campaign_limit,
    remove_member,
    resend_invitation,
    revoke_invitation,
)
from evalapp.common.errors import BadInput, EvalappError, NotThere
from evalapp.common.mails import is_mail_set_up
from evalapp.common.naming import in_sentence
from evalapp.common.pages import page, project_page


def _context(request: HttpRequest, project: Project) -> dict:
    manages = can(user=request.user, project=project, need="manage")
    return {
        "project": project,
        "members": list(list_members(project)),
        "manages": manages,
        "may_mail": is_mail_set_up(),
        "roles": Role.choices,
        "invitations": list(list_invitations(project)[:100]) if manages else [],
    }


@project_page(GET="read")
def members(request: HttpRequest, project: Project) -> HttpResponse:
    return page(request, "accounts/people/members.html", _context(request, project))


@project_page(GET="manage", POST="manage")
def invite(request: HttpRequest, project: Project) -> HttpResponse:
    """Create an invitation, or send one to each address. Only the response to the POST contains the link."""
    form = InvitationForm(request.POST or None, may_mail=is_mail_set_up())
    context: dict = {"project": project, "form": form}
    if created := submit(form, partial(_invite, request=request, project=project)):
        if len(created) > 1 or created[0][0].email:
            messages.success(request, _describe_sent(len(created)))
            return redirect("accounts:member-list", project.slug)
        row, secret = created[0]
        context |= {"invitation": row, "link": make_invitation_link(request, secret)}
    response = page(request, "accounts/people/invite.html", context, status=422 if form.errors else 200)
    response.headers["Cache-Control"] = "no-store"
    return response


def _invite(
    *, request: HttpRequest, project: Project, email: list[str], max_uses: int, **options: Any
) -> list[tuple[Invitation, str]]:
    """Return the new invitations and their secrets."""
    if email:
        link_to = partial(make_invitation_link, request)
        return invite_by_mail(project=project, actor=request.user, emails=email, link_to=link_to, **options)
    return [create_invitation(project=project, actor=request.user, max_uses=max_uses, **options)]


def _describe_sent(count: int) -> str:
    text = ngettext(
        "%(count)d invitation is being sent by mail.", "%(count)d invitations are being sent by mail.", count
    )
    return text % {"count": count}


@project_page(POST="manage")
def member_role(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise BadInput(_("Choose one of the roles."))
    member = get_member(project, pk)
    try:
        member = change_role(member=member, role=form.cleaned_data["role"], actor=request.user)
        if form.cleaned_data["all_campaigns"]:
            lift_campaign_limit(member=member, actor=request.user)
    except EvalappError as error:
        messages.error(request, error.detail)
    else:
        if form.cleaned_data["all_campaigns"]:
            text = _("%(user)s now has the role %(role)s and may take part in all campaigns.")
        else:
            text = _("%(user)s now has the role %(role)s.")
        messages.success(request, text % {"user": member.user, "role": in_sentence(member.get_role_display())})
    return redirect("accounts:member-list", project.slug) if _still_in(request, project) else redirect("home")


@project_page(POST="manage")
def member_remove(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    member = get_member(project, pk)
    try:
        remove_member(member=member, actor=request.user)
    except EvalappError as error:
        messages.error(request, error.detail)
    else:
        messages.success(
            request, _("%(user)s has been removed from the project. Judgements remain.") % {"user": member.user}
        )
    return redirect("accounts:member-list", project.slug) if _still_in(request, project) else redirect("home")


def _still_in(request: HttpRequest, project: Project) -> bool:
    """Return whether the user still has access: owners can change or remove their own membership."""
    return can(user=request.user, project=project, need="read")


def _find_invitation(project: Project, pk: int) -> Invitation:
    invitation = Invitation.objects.select_related("project").filter(project=project, pk=pk).first()
    if invitation is None:
        raise NotThere(_("This project has no such invitation."))
    return invitation


@project_page(POST="manage")
def invitation_send(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """Send an invitation again, with a new link."""
    invitation = _find_invitation(project, pk)
    try:
        resend_invitation(invitation=invitation, actor=request.user, link_to=partial(make_invitation_link, request))
    except EvalappError as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, _("The invitation is being sent again. Its earlier link no longer works."))
    return redirect("accounts:member-list", project.slug)


@project_page(POST="manage")
def invitation_revoke(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    invitation = _find_invitation(project, pk)
    revoke_invitation(invitation=invitation, actor=request.user)
    messages.success(request, _("Invitation revoked. Members who joined with it remain."))
    return redirect("accounts:member-list", project.slug)
