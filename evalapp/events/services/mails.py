"""Mails about events, to members who may read the project and have not switched them off."""

from contextlib import suppress

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import translation

from evalapp.accounts.models import User
from evalapp.accounts.roles import ROLES_FOR
from evalapp.common.display import choose_language
from evalapp.common.errors import BadInput
from evalapp.common.event_kinds import EVENT_KINDS, MAILS_OFF
from evalapp.common.mails import is_mail_set_up, send_mail, site_address

from ..models import Event

#: Group of mails -> name of its templates.
TEMPLATES = {"campaigns": "campaign", "controls": "controls", "runs": "run", "weekly": "week"}


#: The group of mails that only the starter of a run gets.
OWN = "runs"


def send_event_mails(event: Event, starter: User | None = None) -> int:
    """Write the mails about an event in the caller's transaction; return their number."""
    group = EVENT_KINDS[event.kind].mails
    if not group or not is_mail_set_up():
        return 0
    count = 0
    readers = _list_readers(event)
    for user in readers.filter(pk=starter.pk if starter else None) if group == OWN else readers:
        if group in user.preferences.get(MAILS_OFF, ()):
            continue
        context = {
            "project": event.project, "data": event.data, "has_failed": event.kind.endswith(".failed"),
            "link": site_address(event.path), "account": site_address(reverse("accounts:account")),
        }  # fmt: skip
        # An address that is not valid was typed by its user, who is told when typing it.
        with translation.override(choose_language(user, settings.LANGUAGE_CODE)), suppress(BadInput):
            send_mail(
                to=user.email, template=f"events/mails/{TEMPLATES[group]}", context=context, project=event.project,
                about=f"event:{event.pk}",
            )  # fmt: skip
            count += 1
    return count


def _list_readers(event: Event) -> QuerySet[User]:
    readers = User.objects.filter(
        memberships__project=event.project, memberships__role__in=ROLES_FOR["read"], is_active=True
    )
    return readers.exclude(email="").order_by("pk")
