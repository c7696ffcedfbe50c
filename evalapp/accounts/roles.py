"""What each role may do in a project. Every door asks here; nothing else compares role names."""

from __future__ import annotations

from typing import Literal

from django.db import models

Need = Literal["manage", "write", "read", "annotate", "member"]


class Role(models.TextChoices):
    OWNER = "owner", "Owner"
    RESEARCHER = "researcher", "Researcher"
    ANNOTATOR = "annotator", "Annotator"
    VIEWER = "viewer", "Viewer"


#: manage: people, deletion. write: data, campaigns, runs. read: everything that carries system names and
#: judgements. annotate: judge. An annotator must never see system names, hence may not read.
ROLES_FOR: dict[Need, frozenset[str]] = {
    "manage": frozenset({Role.OWNER.value}),
    "write": frozenset({Role.OWNER.value, Role.RESEARCHER.value}),
    "read": frozenset({Role.OWNER.value, Role.RESEARCHER.value, Role.VIEWER.value}),
    "annotate": frozenset({Role.OWNER.value, Role.RESEARCHER.value, Role.ANNOTATOR.value}),
    "member": frozenset(Role.values),
}


def need_to_give(role: str) -> Need:
    """What a link to a role takes: who runs campaigns invites people to judge, owners invite to any role."""
    return "write" if role == Role.ANNOTATOR else "manage"


#: What an API token may be narrowed to: the needs above, without mere membership.
SCOPES: dict[str, str] = {
    "read": "Read data, scores and leaderboards",
    "write": "Upload data, plan campaigns, start runs",
    "annotate": "Judge",
    "manage": "Everything, people and deletion included",
}
