"""A campaign is paused, resumed and closed; the same for judging and for writing."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from django.db import transaction
from django.utils import timezone

from annotation.models import Campaign, WritingCampaign
from evalapp.common import audit
from evalapp.common.errors import Conflict

C = TypeVar("C", Campaign, WritingCampaign)
Move = Literal["pause", "resume", "close"]

_State = Campaign.State
#: From which states a move leads where, and what it is called afterwards.
_MOVES = {
    "pause": ((_State.OPEN,), _State.PAUSED, "paused"),
    "resume": ((_State.PAUSED,), _State.OPEN, "resumed"),
    "close": ((_State.OPEN, _State.PAUSED), _State.CLOSED, "closed"),
}


def move_campaign(*, campaign: C, user: Any, move: Move, noun: str, **also: Any) -> C:
    """Only a move from a state it is allowed from changes the row. `noun` begins the verb of the audit; `also` is
    written with the state."""
    sources, target, done = _MOVES[move]
    fields: dict[str, Any] = {"state": target, **also}
    if target == _State.CLOSED:
        fields["closed_at"] = timezone.now()
    with transaction.atomic():
        changed = type(campaign).objects.filter(pk=campaign.pk, state__in=sources).update(**fields)
        campaign.refresh_from_db()
        if not changed:
            raise Conflict(f"A campaign that is {campaign.get_state_display().lower()} cannot do that: {move}.")
        audit.record(verb=f"{noun}.{done}", project=campaign.project, actor=user, object=campaign)
    return campaign
