"""Change users, projects and members. Every change is one transaction with an entry in the audit log."""

# ruff: noqa: F401 - other apps import these names from here
from .account import change_password, reset_password, update_account, update_display
from .identities import connect_identity, disconnect_identity, sign_in_with_identity
from .invitations import (
    accept_invitation,
    check_look,
    create_invitation,
    find_followed_invitation,
    find_invitation,
    join_with_new_account,
    revoke_invitation,
)
from .mailed_invitations import invite_by_mail, resend_invitation
from .members import add_member, change_role, lift_campaign_limit, remove_member
from .own_data import close_account, collect, withdraw_texts
from .projects import (
    check_may_create_projects,
    create_project,
    delete_project,
    may_create_projects,
    update_project,
)
from .tokens import create_token, revoke_token
