"""Sections and steps of this app on the overview of a project: the latest events, and people."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalapp.accounts.models import Membership, Project
from evalapp.accounts.roles import ROLES_FOR, Role
from evalapp.common.activity import list_activity
from evalapp.common.navigation import find_role
from evalapp.common.overview import Step


def render_activity(request: HttpRequest, project: Project) -> str | None:
    events = list_activity(project)
    if not events:
        return None
    return render_to_string("common/overview/activity.html", {"project": project, "events": events}, request)


def make_people_step(request: HttpRequest, project: Project) -> Step | None:
    """Only owners may invite, so only they see this step."""
    if not request.user.is_superuser and find_role(request, project) not in ROLES_FOR["manage"]:
        return None
    count = Membership.objects.filter(project=project, role=Role.ANNOTATOR).count()
    text = ngettext("%(count)d annotator so far.", "%(count)d annotators so far.", count) % {"count": count}
    url = reverse("accounts:invitation-create", args=[project.slug])
    text = text if count else _("People join by a link you send.")
    return Step(_("Invite annotators"), text, url, _("Invite"), done=count > 0)
