"""Invitations by e-mail: a link for one person each, sent by a worker. Sending again makes a new link, because only the
digest of a secret is stored; the earlier link stops working."""

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import override

from evalapp.accounts import limits
from evalapp.accounts.authentication import digest
from evalapp.accounts.models import Invitation, Membership, Project, User
from evalapp.accounts.selectors import with_creators
from evalapp.common import audit
from evalapp.common.display import choose_language
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.mails import cancel_mails, is_mail_set_up, send_mail
from evalapp.common.naming import in_sentence

from .invitations import CAMPAIGN_MODELS, create_invitation

#: Addresses in one request.
MOST = 100
TEMPLATE = "accounts/mails/invitation"


@transaction.atomic
def invite_by_mail(
    *, project: Project, actor: User, emails: Sequence[str], link_to: Callable[[str], str], **options: Any
) -> list[tuple[Invitation, str]]:
    """Invite each address once, with a link for one person. Returns the invitations and their secrets.

    `link_to` makes the address of a secret; `options`: those of `create_invitation`. Raises `BadInput` for
    addresses that are not valid or belong to members, and `Conflict` if the site sends no mail."""
    check_mail()
    addresses = _check_addresses(project, emails)
    result = []
    for address in addresses:
        row, secret = create_invitation(project=project, actor=actor, **options, max_uses=1)
        row.email = address
        row.save(update_fields=["email"])
        _send(row, actor, link_to(secret))
        result.append((row, secret))
    return result


@transaction.atomic
def resend_invitation(*, invitation: Invitation, actor: User, link_to: Callable[[str], str]) -> tuple[Invitation, str]:
    """Send an open or expired invitation again, with a new link that is valid as long as the first one was. Returns the
    invitation and its new secret."""
    check_mail()
    row = with_creators(Invitation.objects.filter(pk=invitation.pk)).select_for_update(of=("self",)).get()
    if not row.email:
        raise Conflict(_("This invitation has no e-mail address. Copy its link when you create it."))
    if row.state not in (Invitation.State.OPEN, Invitation.State.EXPIRED):
        raise Conflict(_("This invitation is used up or revoked. Create a new one."))
    secret = secrets.token_urlsafe(24)
    now = timezone.now()
    row.digest, row.expires_at = digest(secret), now + (row.expires_at - (row.mailed_at or row.created_at))
    row.save(update_fields=["digest", "expires_at"])
    cancel_mails(about=row.topic)
    _send(row, actor, link_to(secret), now)
    return row, secret


def check_mail() -> None:
    """Raise `Conflict` if the site sends no mail."""
    if not is_mail_set_up():
        text = _("This site sends no mail, because EMAIL_URL is not set. Create a link and send it yourself.")
        raise Conflict.for_field("email", text)


def _check_addresses(project: Project, emails: Sequence[str]) -> list[str]:
    """Return the addresses, each once, as it was first written."""
    spellings: dict[str, str] = {}
    for address in emails:
        spellings.setdefault(address.strip().lower(), address.strip())
    addresses = [address for address in spellings.values() if address]
    if not addresses:
        raise BadInput.for_field("email", _("Enter an e-mail address."))
    if len(addresses) > MOST:
        raise BadInput.for_field("email", _("Enter at most %(most)d addresses at once.") % {"most": MOST})
    members = Membership.objects.filter(project=project).annotate(address=Lower("user__email"))
    known = set(members.filter(address__in=[one.lower() for one in addresses]).values_list("address", flat=True))
    faults = []
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError:
            faults.append(Fault(_("“%(address)s” is not an e-mail address.") % {"address": address}, field="email"))
        if address.lower() in known:
            text = _("%(address)s belongs to a member of this project.")
            faults.append(Fault(text % {"address": address}, field="email"))
    if faults:
        raise BadInput.from_faults(faults)
    return addresses


def _send(row: Invitation, actor: User, link: str, now: datetime | None = None) -> None:
    limits.spend(limits.INVITATIONS_BY_USER, str(actor.pk))
    with override(_choose_language(row)):
        context = {
            "project": row.project.name,
            "sender": str(actor),
            "role": in_sentence(row.get_role_display()),
            "until": date_format(timezone.localtime(row.expires_at), "DATE_FORMAT"),
            "link": link,
        }
        send_mail(to=row.email, template=TEMPLATE, context=context, project=row.project, about=row.topic)
    again = row.mailed_at is not None
    row.mailed_at = now or timezone.now()
    row.save(update_fields=["mailed_at"])
    audit.record(verb="invitation.mailed", project=row.project, actor=actor, object=row.pk, again=again)


def _choose_language(row: Invitation) -> str:
    """The language of the invited person's account, else of the campaign, else of the installation; not that of the
    sender."""
    kind, _cut, pk = row.campaign.partition(":")
    options: dict[str, Any] = {}
    if kind:
        campaigns = apps.get_model("annotation", CAMPAIGN_MODELS[kind]).objects
        options = campaigns.filter(pk=pk).values_list("options", flat=True).first() or {}
    user = User.objects.filter(email__iexact=row.email, is_active=True).order_by("pk").first()
    return choose_language(user, options.get("language") or settings.LANGUAGE_CODE)
