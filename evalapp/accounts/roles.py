"""Roles and their permissions in a project. Nothing else compares names of roles."""

from typing import Any, Literal

from django.db import models
from django.utils.translation import gettext_lazy as _

Need = Literal["manage", "write", "read", "annotate", "member"]


class Role(models.TextChoices):
    OWNER = "owner", _("Owner")
    RESEARCHER = "researcher", _("Researcher")
    ANNOTATOR = "annotator", _("Annotator")
    VIEWER = "viewer", _("Viewer")


#: manage: members, deletion. write: data, campaigns, runs. read: everything with names of systems and judgements.
#: annotate: judge. Annotators must not see names of systems, so they may not read.
ROLES_FOR: dict[Need, frozenset[str]] = {
    "manage": frozenset({Role.OWNER.value}),
    "write": frozenset({Role.OWNER.value, Role.RESEARCHER.value}),
    "read": frozenset({Role.OWNER.value, Role.RESEARCHER.value, Role.VIEWER.value}),
    "annotate": frozenset({Role.OWNER.value, Role.RESEARCHER.value, Role.ANNOTATOR.value}),
    "member": frozenset(Role.values),
}


def need_to_invite(role: str) -> Need:
    """Return the permission to invite people to a role: researchers may invite annotators, owners everyone."""
    return "write" if role == Role.ANNOTATOR else "manage"


#: Scopes of API tokens: the permissions above except `member`.
SCOPES: dict[str, Any] = {
    "read": _("Read data, scores and leaderboards"),
    "write": _("Upload data, plan campaigns, start runs"),
    "annotate": _("Judge"),
    "manage": _("Everything, including members and deletion"),
}
