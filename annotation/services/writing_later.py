"""Confirmation of written references by other annotators, and withdrawal and restoration by researchers."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.allocation.streams import coin
from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import WritingCampaign, WritingMember, WritingUnit, WrittenConfirmation, WrittenReference
from annotation.selectors.writing import TAKEN_BACK, get_written, list_originals
from evalapp.accounts.models import User
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.naming import in_sentence

from .writing_answers import SubmissionConflict
from .writing_handout import lock_member
from .writing_store import put_reference
from .writing_view import check_right, list_unconfirmed

_State = WrittenReference.State
_Verdict = WrittenConfirmation.Verdict


# ---- confirmation -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ToConfirm:
    """A written text and the original, in random order: `texts` are a and b. `public` is empty if there is nothing to
    confirm."""

    campaign: WritingCampaign
    public: str = ""
    context: tuple[str, ...] = ()
    source: str | None = None
    texts: tuple[str, ...] = ()
    left: int = 0

    def wire(self) -> dict[str, Any]:
        return {
            "id": self.public,
            "campaign": self.campaign.pk,
            "context": list(self.context),
            "source": self.source,
            "texts": [{"id": name, "text": text} for name, text in zip("ab", self.texts, strict=False)],
            "left": self.left,
        }


def get_next_confirmation(*, user: User, campaign_id: int) -> ToConfirm:
    """A text by another annotator that needs this annotator's comparison with the original."""
    with transaction.atomic():
        member = lock_member(user, campaign_id)
    rows = list_unconfirmed(member).select_related(
        "unit__item", "task__campaign", "task__unit", "task__member"
    )  # fmt: skip
    row = rows.order_by("pk").first() if member.campaign.state == WritingCampaign.State.OPEN else None
    if row is None:
        return ToConfirm(member.campaign)
    pair = [row.text, _original(row)]
    if _is_swapped(member, row):
        pair.reverse()
    item = row.unit.item
    return ToConfirm(member.campaign, row.public, tuple(item.context), item.source, tuple(pair), rows.count())


def _original(row: WrittenReference) -> str:
    originals = list_originals(row.task)
    return originals[0] if originals else ""


def _is_swapped(member: WritingMember, row: WrittenReference) -> bool:
    return coin(member.campaign.seed, "confirm", member.number, row.pk)


def confirm_reference(*, user: User, public: str, submission: UUID, better: str) -> WrittenReference:
    """Store which of the two texts is better: a, b or tie. With the required number of votes for it, the written text
    is added to the set; with as many against it, it is rejected. The same submission again changes nothing."""
    if better not in ("a", "b", "tie"):
        raise BadInput.for_field("better", _("Choose a, b or tie."))
    row = WrittenReference.objects.select_related("campaign__project", "unit", "task").filter(public=public).first()
    if row is None:
        raise NotThere(_("There is no such text to confirm."))
    check_right(user, row.campaign)
    try:
        with transaction.atomic():
            member = lock_member(user, row.campaign_id)
        with transaction.atomic():  # not under the member's lock: the item comes first, as everywhere
            _confirm(member, row, submission, better)
    except IntegrityError as error:
        raise SubmissionConflict(_("You have already compared this text. Nothing was changed.")) from error
    row.refresh_from_db()
    return row


def _confirm(member: WritingMember, row: WrittenReference, submission: UUID, better: str) -> None:
    WritingUnit.objects.select_for_update(no_key=True).get(pk=row.unit_id)
    fresh = WrittenReference.objects.select_for_update().get(pk=row.pk)
    verdict = _verdict(_is_swapped(member, row), better)
    known = WrittenConfirmation.objects.filter(submission=submission).first()
    if known is not None and (known.written_id, known.member_id, known.verdict) == (row.pk, member.pk, verdict):
        return
    if known is not None:
        raise SubmissionConflict(_("This submission id was used for another answer. Nothing was changed."))
    if row.member_id == member.pk:
        raise Conflict(_("This is your own text. Another annotator compares it."))
    if row.campaign.state != WritingCampaign.State.OPEN:
        state = in_sentence(row.campaign.get_state_display())
        raise Conflict(_("The campaign is %(state)s, so texts cannot be confirmed now.") % {"state": state})
    WrittenConfirmation.objects.create(
        campaign_id=row.campaign_id, written=row, member=member, verdict=verdict, submission=submission,
        swapped=_is_swapped(member, row),
    )  # fmt: skip
    if fresh.state != _State.WAITING:
        return  # decided by others meanwhile; the answer is still stored
    fresh.state = _decided(fresh, int(row.campaign.options["confirmations"]))
    if fresh.state == _State.SHOWN:
        fresh.reference = put_reference(fresh.unit.item_id, fresh.set_id, fresh.text, fresh.meta)
    fresh.save(update_fields=["reference", "state"])


def _decided(row: WrittenReference, needed: int) -> str:
    """The state of a waiting text after the confirmations so far."""
    verdicts = list(WrittenConfirmation.objects.filter(written=row).values_list("verdict", flat=True))
    better = verdicts.count(_Verdict.WRITTEN.value)
    if better >= needed:
        return _State.SHOWN.value
    return _State.REFUSED.value if len(verdicts) - better >= needed else _State.WAITING.value


def _verdict(swapped: bool, better: str) -> str:
    if better == "tie":
        return _Verdict.TIE.value
    return _Verdict.WRITTEN.value if (better == "b") == swapped else _Verdict.ORIGINAL.value


# ---- withdrawal and restoration ---------------------------------------------------------------------------


def withdraw_reference(*, user: User, reference_id: int, reason: str = "") -> WrittenReference:
    """Take a written reference out of its set; its record stays. Idempotent."""
    if not isinstance(reason, str) or not is_storable(reason):
        raise BadInput.for_field("reason", UNSTORABLE)
    row = get_written(user=user, reference_id=reference_id)
    with transaction.atomic():
        WritingUnit.objects.select_for_update(no_key=True).get(pk=row.unit_id)
        row.refresh_from_db()
        if row.state == _State.WITHDRAWN:
            return row
        withdraw_row(row, user, reason.strip()[:300])
    return row


def withdraw_row(row: WrittenReference, user: User, reason: str) -> None:
    """Withdraw the reference and record that. The caller has locked the item's unit and read the row again."""
    reference = row.reference
    row.state_before, row.state, row.reference = row.state, _State.WITHDRAWN.value, None
    row.withdrawn_at, row.withdrawn_by, row.reason = timezone.now(), user, reason
    row.save()
    if reference is not None:
        reference.delete()
    _record("reference.withdrawn", row, user, reason=row.reason)


def restore_reference(*, user: User, reference_id: int) -> WrittenReference:
    """Put a withdrawn reference back at the end of its set. Idempotent."""
    row = get_written(user=user, reference_id=reference_id)
    with transaction.atomic():
        WritingUnit.objects.select_for_update(no_key=True).get(pk=row.unit_id)
        row.refresh_from_db()
        if row.state != _State.WITHDRAWN:
            return row
        if not row.text:
            raise Conflict(_("Its annotator withdrew it, and the text was deleted."))
        if was_taken_back(row):
            WritingMember.objects.filter(pk=row.member_id).update(accepted=F("accepted") + 1)
        row.state = row.state_before or _State.SHOWN.value
        row.state_before, row.withdrawn_at, row.withdrawn_by, row.reason = "", None, None, ""
        if row.state == _State.WAITING:  # it may have been compared meanwhile
            row.state = _decided(row, int(row.campaign.options["confirmations"]))
        if row.state == _State.SHOWN:
            row.reference = put_reference(row.unit.item_id, row.set_id, row.text, row.meta)
        row.save()
        _record("reference.restored", row, user)
    return row


def was_taken_back(row: WrittenReference) -> bool:
    """Whether its own annotator took it back, see `take_back_last`."""
    return row.state == _State.WITHDRAWN and row.reason == TAKEN_BACK and row.withdrawn_by_id == row.member.annotator_id


def _record(verb: str, row: WrittenReference, user: User, **detail: Any) -> None:
    audit.record(
        verb=verb, project=row.campaign.project, actor=user, object=f"{row.set.name}: {row.text}",
        campaign=row.campaign.slug, item=row.unit.item.key, reference=row.pk, **detail,
    )  # fmt: skip
