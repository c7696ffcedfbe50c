"""The events of a project that webhooks and mails report: one list for both."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class EventKind:
    """A kind of event. `mails` is the group of `MAIL_GROUPS` that reports it by mail; empty: only webhooks do."""

    name: str
    label: Any
    mails: str = ""


EVENT_KINDS = {
    kind.name: kind
    for kind in (
        EventKind("campaign.complete", _("A judging campaign has all planned answers"), "campaigns"),
        EventKind("controls.failed", _("An annotator has failed control items"), "controls"),
        EventKind("run.succeeded", _("A run of an evaluator has ended"), "runs"),
        EventKind("run.failed", _("A run of an evaluator has failed"), "runs"),
        EventKind("training.succeeded", _("A training has ended"), "runs"),
        EventKind("training.failed", _("A training has failed"), "runs"),
        EventKind("participant.finished", _("A hired participant has finished")),
        EventKind("progress.weekly", _("Progress of the last week"), "weekly"),
    )
}
#: Sent by the button *Test* only.
TEST_EVENT = "webhook.test"
#: Member of a user's preferences: the groups of mails that are switched off.
MAILS_OFF = "mails_off"
#: Group of mails -> its label on the account page.
MAIL_GROUPS = {
    "campaigns": _("A judging campaign is complete"),
    "controls": _("An annotator has failed control items"),
    "runs": _("A run or training that I started has ended or failed"),
    "weekly": _("Weekly progress"),
}


def label_event(name: str) -> str:
    """Return the label of a kind of event; its name if this version does not know it."""
    if name == TEST_EVENT:
        return str(_("Test event"))
    return str(EVENT_KINDS[name].label) if name in EVENT_KINDS else name
