from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import Assignment, CampaignMember, ItemFlag, Slot
from annotation.services.judging import get_next_assignment
from annotation.services.judging_acts import StaleDraft, flag_assignment, resolve_flag, save_draft, skip_assignment
from annotation.services.judging_handout import return_expired_slots
from evalapp.common.errors import BadInput, Conflict, NotAllowed, NotThere
from tests.annotation.services.judging_helpers import open_for, send
from tests.annotation.services.test_writing_on_postgres import at_once
from tests.cast import make_cast


@pytest.fixture
def campaign(cast):
    return open_for(cast)


@pytest.fixture
def shown(cast, campaign):
    return get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown


def save(cast, shown, version, **draft):
    return save_draft(user=cast.annotator, public=shown.public, version=version, draft=draft)


@pytest.mark.promise("draft")
def test_draft_save_is_compare_and_set(cast, shown):
    assert save(cast, shown, 0, text="a").version == 1
    assert save(cast, shown, 1, text="ab").version == 2
    with pytest.raises(StaleDraft) as caught:
        save(cast, shown, 1, text="other tab")
    assert caught.value.extra["stored"] == {"version": 2, "draft": {"text": "ab"}}
    assert caught.value.extra["yours"]["draft"] == {"text": "other tab"}
    row = Assignment.objects.get()
    assert (row.draft, row.draft_version) == ({"text": "ab"}, 2)


@pytest.mark.promise("draft")
def test_resaving_the_same_draft_is_no_conflict(cast, shown):
    first = save(cast, shown, 0, text="a")
    again = save(cast, shown, 0, text="a")
    assert (again.version, again.saved_at) == (first.version, first.saved_at)


def test_saving_renews_the_lease(cast, campaign, shown):
    Assignment.objects.update(lease_until=timezone.now() + timedelta(seconds=5))
    save(cast, shown, 0, text="a")
    assert Assignment.objects.get().lease_until > timezone.now() + timedelta(minutes=25)


def test_draft_is_restored_when_the_page_opens_again(cast, campaign, shown):
    save(cast, shown, 0, answer={"likert-quality": 2})
    again = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert (again.draft, again.draft_version) == ({"answer": {"likert-quality": 2}}, 1)


@pytest.mark.promise("draft", "late")
def test_draft_after_the_lease_reclaims_the_slot_or_is_stored(cast, campaign, shown):
    Assignment.objects.update(lease_until=timezone.now() - timedelta(seconds=5))
    assert return_expired_slots() == 1
    assert save(cast, shown, 0, text="a").holds
    assert Assignment.objects.get().state == "open"
    Assignment.objects.update(lease_until=timezone.now() - timedelta(seconds=5))
    return_expired_slots()
    Slot.objects.filter(unit=shown.unit_id).update(state="taken")
    kept = save(cast, shown, 1, text="ab")
    assert not kept.holds
    assert Assignment.objects.get().draft == {"text": "ab"}


def test_impossible_version_is_a_conflict(cast, shown):
    for version in (2**31 - 1, 2**31, 2**70):
        with pytest.raises(StaleDraft):
            save(cast, shown, version, text="a")


def test_no_assignment_or_answer_in_a_project_under_deletion(cast, campaign, shown):
    cast.project.deleting_at = timezone.now()
    cast.project.save()
    for act in (
        lambda: get_next_assignment(user=cast.annotator, campaign_id=campaign.pk, ahead=True),
        lambda: save(cast, shown, 0, text="a"),
        lambda: send(cast.annotator, campaign, shown.public),
    ):
        with pytest.raises(NotThere):
            act()


def test_drafts_are_objects_of_limited_size(cast, shown):
    for draft in ("text", None, {"text": "x" * 70_000}, {"text": "\x00"}, {"\udc00": 1}):
        with pytest.raises(BadInput):
            save_draft(user=cast.annotator, public=shown.public, version=0, draft=draft)


def test_only_the_holder_can_act(cast, shown):
    for user in (cast.researcher, cast.viewer, cast.stranger):
        with pytest.raises(NotThere):
            save_draft(user=user, public=shown.public, version=0, draft={})
        with pytest.raises(NotThere):
            skip_assignment(user=user, public=shown.public)
        with pytest.raises(NotThere):
            flag_assignment(user=user, public=shown.public, reason="broken")


def test_skipped_unit_is_free_for_others_and_not_repeated(cast, campaign, shown):
    turn = skip_assignment(user=cast.annotator, public=shown.public, reason="I know the author", then="next")
    assert turn.shown.unit_id != shown.unit_id
    assert turn.progress.skipped == 1
    assert Slot.objects.get(unit=shown.unit_id).state == "free"
    skip_assignment(user=cast.annotator, public=shown.public)
    assert CampaignMember.objects.get().skipped == 1
    assert Assignment.objects.get(public=shown.public).skip_reason == "I know the author"
    left = []
    while turn.shown is not None:
        left.append(turn.shown.unit_id)
        send(cast.annotator, campaign, turn.shown.public)
        turn = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk)
    assert shown.unit_id not in left
    assert len(left) == 7
    other = get_next_assignment(user=cast.researcher, campaign_id=campaign.pk).shown
    assert other.unit_id == shown.unit_id


def test_answered_unit_cannot_be_skipped(cast, campaign, shown):
    send(cast.annotator, campaign, shown.public)
    with pytest.raises(Conflict):
        skip_assignment(user=cast.annotator, public=shown.public)


def test_skipping_can_be_forbidden(cast):
    campaign = open_for(cast, slug="strict", options={"allow_skip": False})
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    with pytest.raises(NotAllowed):
        skip_assignment(user=cast.annotator, public=shown.public)


def test_flags(cast, shown):
    first = flag_assignment(user=cast.annotator, public=shown.public, reason="broken", text="cut off")
    assert flag_assignment(user=cast.annotator, public=shown.public, reason="broken", text="cut off") == first
    with pytest.raises(BadInput) as refused:
        flag_assignment(user=cast.annotator, public=shown.public, reason="boring")
    assert all(str(label) in refused.value.detail for label in ItemFlag.Reason.labels), "as the form names them"
    assert resolve_flag(user=cast.researcher, flag=first).resolved_by == cast.researcher
    # A remark repeated after it was resolved is a new remark.
    flag_assignment(user=cast.annotator, public=shown.public, reason="broken", text="cut off")
    assert ItemFlag.objects.count() == 2


def test_one_flag_from_four_tabs(postgres_db):
    cast = make_cast()
    shown = get_next_assignment(user=cast.annotator, campaign_id=open_for(cast).pk).shown
    flags = at_once([lambda: flag_assignment(user=cast.annotator, public=shown.public, reason="broken")] * 4)
    assert len({flag.pk for flag in flags}) == 1
