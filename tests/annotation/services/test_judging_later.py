from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.utils import timezone

from annotation.models import Assignment, CampaignMember, Comparison, Judgement, Rating, Slot
from annotation.services import judging_handout
from annotation.services.campaigns import close_campaign
from annotation.services.judging import get_next_assignment
from annotation.services.judging_acts import skip_assignment
from annotation.services.judging_handout import return_expired_slots
from annotation.services.judging_later import StaleAnswer, SubmissionConflict
from evalapp.common.errors import NotAllowed
from tests.annotation.services.judging_helpers import open_for, send


def hand(user, campaign):
    return get_next_assignment(user=user, campaign_id=campaign.pk).shown


def expire(public):
    Assignment.objects.filter(public=public).update(lease_until=timezone.now() - timedelta(minutes=1))
    return_expired_slots()


@pytest.mark.promise("submission")
def test_repeated_submission_returns_the_first_answer(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign)
    number = uuid4()
    first = send(cast.annotator, campaign, shown.public, 4, submission=number, then="next")
    second = send(cast.annotator, campaign, shown.public, 4, submission=number, then="next", seconds=99)
    assert (second.version, second.extra, second.created_at) == (first.version, first.extra, first.created_at)
    assert second.repeated
    assert second.next.public == first.next.public
    assert Judgement.objects.count() == Rating.objects.count() == CampaignMember.objects.get().done == 1


@pytest.mark.promise("submission")
def test_repeated_submission_with_another_answer_shows_both(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign)
    number = uuid4()
    send(cast.annotator, campaign, shown.public, 4, submission=number)
    with pytest.raises(SubmissionConflict) as caught:
        send(cast.annotator, campaign, shown.public, 2, submission=number)
    assert caught.value.extra["stored"]["answer"] == {"likert-quality": 4}
    assert caught.value.extra["yours"]["answer"] == {"likert-quality": 2}
    assert Rating.objects.get().value == 4


def test_submission_number_of_another_assignment_is_refused(cast):
    campaign = open_for(cast)
    number = uuid4()
    following = send(
        cast.annotator, campaign, hand(cast.annotator, campaign).public, submission=number, then="next"
    ).next
    with pytest.raises(SubmissionConflict):
        send(cast.annotator, campaign, following.public, submission=number)
    assert Assignment.objects.get(public=following.public).state == "open"


def test_submission_number_of_another_person_reveals_nothing(cast):
    campaign = open_for(cast, overlap=2)
    number = uuid4()
    send(cast.researcher, campaign, hand(cast.researcher, campaign).public, 1, submission=number, note="mine")
    mine = hand(cast.annotator, campaign)
    with pytest.raises(SubmissionConflict) as caught:
        send(cast.annotator, campaign, mine.public, 5, submission=number)
    assert caught.value.extra["stored"] is None
    send(cast.annotator, campaign, mine.public, 5)
    with pytest.raises(SubmissionConflict) as caught:
        send(cast.annotator, campaign, mine.public, 3, submission=number, replaces=1)
    assert caught.value.extra["stored"] is None


def test_second_answer_without_a_replaced_version_is_refused(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign)
    send(cast.annotator, campaign, shown.public, 4)
    with pytest.raises(StaleAnswer) as caught:
        send(cast.annotator, campaign, shown.public, 2)
    assert caught.value.extra["stored"]["version"] == 1
    assert Judgement.objects.count() == 1


@pytest.mark.promise("submission")
def test_revision_names_its_predecessor_and_all_versions_stay(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign)
    send(cast.annotator, campaign, shown.public, 4)
    revised = send(cast.annotator, campaign, shown.public, 2, replaces=1, note="looked again")
    assert revised.version == 2
    assert [(row.version, row.current) for row in Judgement.objects.order_by("version")] == [(1, False), (2, True)]
    rating = Rating.objects.get()
    assert (rating.value, rating.judgement) == (2, Judgement.objects.get(version=2).pk)
    assert CampaignMember.objects.get().done == 1
    with pytest.raises(StaleAnswer) as caught:
        send(cast.annotator, campaign, shown.public, 5, replaces=1)
    assert caught.value.extra["stored"]["answer"] == {"likert-quality": 2}


def test_replacing_a_missing_answer_is_refused(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign)
    with pytest.raises(StaleAnswer):
        send(cast.annotator, campaign, shown.public, 4, replaces=1)
    assert send(cast.annotator, campaign, shown.public, 4, replaces=0).version == 1


def test_no_revision_once_closed_or_disabled(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign)
    send(cast.annotator, campaign, shown.public, 4)
    close_campaign(campaign=campaign, user=cast.researcher)
    with pytest.raises(StaleAnswer, match="closed"):
        send(cast.annotator, campaign, shown.public, 2, replaces=1)
    strict = open_for(cast, slug="strict", options={"allow_revise": False})
    shown = hand(cast.annotator, strict)
    send(cast.annotator, strict, shown.public, 4)
    with pytest.raises(NotAllowed):
        send(cast.annotator, strict, shown.public, 2, replaces=1)


@pytest.mark.promise("late")
def test_late_answer_takes_a_free_slot(cast):
    campaign = open_for(cast, items=1, systems=("sys-a",))
    shown = hand(cast.annotator, campaign)
    expire(shown.public)
    assert Slot.objects.get().state == "free"
    sent = send(cast.annotator, campaign, shown.public, 3)
    assert sent.extra is False
    assert Slot.objects.get().state == "taken"
    assert Assignment.objects.get().slot == Slot.objects.get()
    assert Rating.objects.get().value == 3
    assert hand(cast.researcher, campaign) is None


@pytest.mark.promise("late")
def test_late_answer_without_a_slot_is_stored_as_extra(cast):
    campaign = open_for(cast, items=1, systems=("sys-a",))
    mine = hand(cast.annotator, campaign)
    expire(mine.public)
    theirs = hand(cast.researcher, campaign)
    sent = send(cast.annotator, campaign, mine.public, 3)
    assert sent.extra is True
    assert send(cast.researcher, campaign, theirs.public, 5).extra is False
    assert Judgement.objects.get(extra=True).answer == {"likert-quality": 3}
    assert list(Rating.objects.values_list("rater", "value")) == [("p-rita", 5)]
    # A revision of an extra answer stays one.
    assert send(cast.annotator, campaign, mine.public, 2, replaces=1).extra is True
    assert Rating.objects.count() == 1
    # Only answers that count are repeated, so this one is not a deliberate repeat.
    sheet = SimpleNamespace(options={"repeat_gap": 1})
    people = [
        SimpleNamespace(campaign_id=campaign.pk, user_id=user.pk, seed=1) for user in (cast.annotator, cast.researcher)
    ]
    again = [judging_handout._choose_extra_unit(who, sheet, "repeat", 9) for who in people]
    assert again == [None, Judgement.objects.first().assignment.unit_id]


@pytest.mark.promise("late")
def test_answer_at_the_end_of_the_lease_is_not_extra(cast):
    """The lease has expired, but the slot has not been requested yet."""
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign)
    Assignment.objects.update(lease_until=timezone.now() - timedelta(hours=2))
    assert send(cast.annotator, campaign, shown.public).extra is False


@pytest.mark.promise("late", "draft")
def test_reassigned_text_keeps_its_sides(cast):
    """The draft, and an answer queued in an offline browser, refer to the sides as shown; the second slot asks for the
    other order."""
    campaign = open_for(cast, "pairwise", items=1, overlap=2)
    Slot.objects.filter(number=0).update(swapped=False, rank=0)
    Slot.objects.filter(number=1).update(swapped=True, rank=1)
    first = hand(cast.annotator, campaign)
    begun = Assignment.objects.get().slot
    expire(first.public)
    Slot.objects.filter(pk=begun.pk).update(state="taken")  # reassigned to another person meanwhile
    again = hand(cast.annotator, campaign)
    row = Assignment.objects.get()
    assert (again.public, row.slot.swapped) == (first.public, not begun.swapped)
    assert again.texts == first.texts
    send(cast.annotator, campaign, first.public, "a")
    better = Comparison.objects.get()
    assert {"a": better.output_a.text, "b": better.output_b.text}[better.verdict] == first.texts[0]


@pytest.mark.promise("late", "overlap")
def test_clock_set_ahead_holds_no_slot_forever(cast, monkeypatch):
    """A machine with its clock a year ahead assigns a text; then the clock is corrected."""
    campaign = open_for(cast, items=1, systems=("sys-a",))
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now + timedelta(days=400))
    abandoned = hand(cast.annotator, campaign)
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    assert hand(cast.researcher, campaign) is None  # the holder gets the usual lease from now on
    monkeypatch.setattr("django.utils.timezone.now", lambda: now + timedelta(minutes=31))
    theirs = hand(cast.researcher, campaign)
    assert theirs.unit_id == abandoned.unit_id
    assert send(cast.annotator, campaign, abandoned.public, 3, seconds=None).extra is True
    assert send(cast.researcher, campaign, theirs.public, 4).extra is False
    assert set(Judgement.objects.filter(seconds__lt=0)) == set()


@pytest.mark.promise("submission")
def test_answer_after_a_skip_counts(cast):
    """The offline queue can deliver an answer after another tab has skipped the unit."""
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign)
    skip_assignment(user=cast.annotator, public=shown.public, reason="later")
    assert send(cast.annotator, campaign, shown.public, 4).extra is False
    member = CampaignMember.objects.get()
    assert (member.done, member.skipped) == (1, 0)
