"""Change users, projects and members. Every change is one transaction with an entry in the audit log."""

from .account import change_password, reset_password, update_account
from .invitations import (
    accept_invitation,
    check_look,
    create_invitation,
    find_followed_invitation,
    find_invitation,
    join_with_new_account,
    revoke_invitation,
)
from .members import add_member, change_role, lift_campaign_limit, remove_member
from .own_data import close_account, collect, withdraw_texts
from .projects import create_project, delete_project, may_create_projects, update_project
from .tokens import create_token, revoke_token

__all__ = [
    "accept_invitation",
    "add_member",
    "change_password",
    "change_role",
    "check_look",
    "close_account",
    "collect",
    "create_invitation",
    "create_project",
    "create_token",
    "delete_project",
    "find_followed_invitation",
    "find_invitation",
    "join_with_new_account",
    "lift_campaign_limit",
    "may_create_projects",
    "remove_member",
    "reset_password",
    "revoke_invitation",
    "revoke_token",
    "update_account",
    "update_project",
    "withdraw_texts",
]
