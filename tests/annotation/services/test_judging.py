from __future__ import annotations

from collections import Counter
from datetime import timedelta
from uuid import uuid4

import orjson
import pytest
from django.utils import timezone

from annotation.models import Assignment, CampaignMember, Comparison, Judgement, Rating, Slot
from annotation.services.campaigns import close_campaign, pause_campaign, resume_campaign, update_campaign
from annotation.services.judging import CampaignNotOpen, get_next_assignment, submit_answer
from annotation.services.judging_handout import return_expired_slots
from evalapp.accounts.models import ApiToken, Membership
from evalapp.common.errors import BadInput, NotAllowed, NotThere
from tests.annotation.services.judging_helpers import open_for, send


def hand(user, campaign, **more):
    return get_next_assignment(user=user, campaign_id=campaign.pk, **more)


def judge_all(user, campaign):
    """Every public id assigned until none is left."""
    seen = []
    turn = hand(user, campaign)
    shown = turn.shown
    while shown is not None:
        seen.append(shown)
        shown = send(user, campaign, shown.public, then="next").next
    return seen


def pass_time(monkeypatch, **delta):
    moment = timezone.now() + timedelta(**delta)
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment)


# ---- handing out ------------------------------------------------------------------------------------------


@pytest.mark.promise("overlap")
def test_two_tabs_show_the_same_unit(cast):
    campaign = open_for(cast)
    first, second = hand(cast.annotator, campaign), hand(cast.annotator, campaign)
    assert first.shown.public == second.shown.public
    assert Assignment.objects.count() == 1
    assert Slot.objects.filter(state="taken").count() == 1


def test_only_one_unit_can_be_prefetched(cast):
    campaign = open_for(cast)
    first = hand(cast.annotator, campaign).shown
    ahead = [hand(cast.annotator, campaign, ahead=True).shown.public for _ in range(3)]
    assert len({first.public, *ahead}) == 2
    assert Assignment.objects.filter(state="open").count() == 2
    sent = send(cast.annotator, campaign, first.public, then="ahead")
    assert sent.next.public not in {first.public, *ahead}
    assert Assignment.objects.filter(state="open").count() == 2


@pytest.mark.promise("overlap")
def test_each_unit_goes_once_to_each_person_and_to_k_in_all(cast):
    campaign = open_for(cast, overlap=2)
    people = [cast.annotator, cast.researcher, cast.owner]
    counts = [len(judge_all(user, campaign)) for user in people]
    assert counts[:2] == [8, 8]
    assert counts[2] == 0
    taken = Assignment.objects.values_list("unit", "annotator")
    assert len(set(taken)) == len(taken) == 16
    assert set(Counter(unit for unit, _ in taken).values()) == {2}
    assert hand(cast.owner, campaign).why == "empty"


def test_order_is_random_and_fixed_by_seeds(cast):
    campaign = open_for(cast, items=12, overlap=2)
    mine = [row.unit_id for row in judge_all(cast.annotator, campaign)]
    theirs = [row.unit_id for row in judge_all(cast.researcher, campaign)]
    assert mine != theirs
    assert mine != sorted(mine)
    assert sorted(mine) == sorted(theirs)


def test_limit_per_person(cast):
    campaign = open_for(cast, max_per_annotator=3)
    assert len(judge_all(cast.annotator, campaign)) == 3
    turn = hand(cast.annotator, campaign)
    assert (turn.shown, turn.why, turn.progress.goal) == (None, "limit", 3)
    update_campaign(campaign=campaign, user=cast.researcher, changes={"max_per_annotator": 5})
    assert len(judge_all(cast.annotator, campaign)) == 2


def test_assignment_reveals_no_system_person_or_control(cast):
    control = {"item": "i000", "system": "sys-a", "expected": {"likert-quality": [5, 5]}, "why": "secret reason"}
    campaign = open_for(cast, controls=[control], options={"control_rate": 0.5})
    raw = b""
    shapes = set()
    turn = hand(cast.annotator, campaign)
    while turn.shown is not None:
        wire = turn.wire()
        raw += orjson.dumps(wire)
        shapes.add(tuple(sorted(wire)))
        sent = send(cast.annotator, campaign, turn.shown.public)
        raw += orjson.dumps(sent.wire())
        assert sent.feedback is None
        turn = hand(cast.annotator, campaign)
    assert Judgement.objects.filter(assignment__unit__kind="control").count() == 1
    assert len(shapes) == 1
    # Texts made by the factory contain their system's name because they are judged. No other field may.
    for row in cast.project.outputs.all():
        raw = raw.replace(row.text.encode(), b"")
    for word in (b"sys-a", b"sys-b", b"secret reason", b"control", b"expected", b"example.org", b"p-anna", b"rita"):
        assert word not in raw, word


# ---- practice, controls, repeats --------------------------------------------------------------------------


def test_practice_comes_first_and_returns_the_expected_judgement(cast):
    checks = [
        {"item": f"i00{k}", "system": "sys-a", "expected": {"likert-quality": [1, 2]}, "why": f"Reason {k}"}
        for k in range(2)
    ]
    campaign = open_for(cast, practice=checks)
    first = hand(cast.annotator, campaign)
    assert first.shown.is_practice
    assert b"Reason" not in orjson.dumps(first.wire())
    sent = send(cast.annotator, campaign, first.shown.public, 4, then="next")
    assert sent.feedback == {"passed": False, "expected": {"likert-quality": [1, 2]}, "why": "Reason 0"}
    assert sent.next.is_practice
    sent = send(cast.annotator, campaign, sent.next.public, 2, then="next")
    assert sent.feedback["passed"] is True
    assert not sent.next.is_practice
    assert sent.progress.done == 0
    assert not Rating.objects.exists()


def test_controls_are_mixed_in_once_and_never_rated(cast):
    checks = [{"item": f"i00{k}", "system": "sys-b", "expected": {"likert-quality": 5}} for k in range(3)]
    campaign = open_for(cast, items=20, controls=checks, options={"control_rate": 0.2})
    shown = judge_all(cast.annotator, campaign)
    kinds = [row.unit_kind for row in shown]
    assert kinds.count("control") == 3
    # A fifth: one in each of the first three blocks of five.
    assert [kinds[start : start + 5].count("control") for start in (0, 5, 10)] == [1, 1, 1]
    assert Rating.objects.count() == 37
    assert list(Judgement.objects.filter(passed__isnull=False).values_list("passed", flat=True)) == [False] * 3


def test_deliberate_repeats_have_their_own_rater(cast):
    campaign = open_for(cast, items=15, options={"repeat_share": 0.25, "repeat_gap": 4})
    shown = judge_all(cast.annotator, campaign)
    again = Assignment.objects.filter(repeat_number=1)
    assert again.count() >= 5
    assert len(shown) == 30 + again.count()
    for row in again:
        first = Assignment.objects.get(unit=row.unit, repeat_number=0)
        assert row.order_number - first.order_number >= 4
        assert row.slot is None
    assert Rating.objects.filter(rater="p-anna").count() == 30
    assert Rating.objects.filter(rater="p-anna#2").count() == again.count()


# ---- answers ----------------------------------------------------------------------------------------------


def test_answer_becomes_a_rating_in_the_same_transaction(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign).shown
    sent = send(cast.annotator, campaign, shown.public, 5, note="clear", seconds=12.5)
    rating = Rating.objects.get()
    judgement = Judgement.objects.get()
    assert (rating.value, rating.rater, rating.judgement, rating.simulated) == (5, "p-anna", judgement.pk, False)
    assert rating.output.pk == judgement.assignment.unit.output_a_id
    assert (judgement.note, judgement.seconds, judgement.version, judgement.current) == ("clear", 12.5, 1, True)
    assert (sent.progress.done, sent.progress.seconds, sent.extra) == (1, 12.5, False)
    member = CampaignMember.objects.get()
    assert (member.done, member.seconds) == (1, 12.5)


@pytest.mark.parametrize("swapped", [False, True])
def test_sides_are_restored_before_storing(cast, swapped):
    campaign = open_for(cast, "pairwise", overlap=1)
    Slot.objects.update(swapped=swapped)
    shown = hand(cast.annotator, campaign).shown
    row = Assignment.objects.get()
    texts = [row.unit.output_a.text, row.unit.output_b.text]
    assert shown.texts == (texts[::-1] if swapped else texts)
    send(cast.annotator, campaign, shown.public, "a")  # the first shown text is better
    comparison = Comparison.objects.get()
    assert comparison.verdict == ("b" if swapped else "a")
    assert (comparison.output_a_id, comparison.output_b_id) == (row.unit.output_a_id, row.unit.output_b_id)
    assert Judgement.objects.get().answer == {"pairwise-quality": "a"}


@pytest.mark.parametrize("swapped", [False, True])
def test_turing_stores_the_position_of_the_reference(cast, swapped):
    campaign = open_for(cast, "turing")
    Slot.objects.update(swapped=swapped)
    shown = hand(cast.annotator, campaign).shown
    unit = Assignment.objects.get().unit
    assert shown.texts[0 if not swapped else 1] == unit.output_a.text
    assert shown.texts[1 if not swapped else 0] == unit.reference.text
    send(cast.annotator, campaign, shown.public, "b")
    comparison = Comparison.objects.get()
    assert (comparison.output_b, comparison.reference) == (None, unit.reference.position)
    assert comparison.verdict == ("a" if swapped else "b")


def test_errors_name_their_field_and_store_nothing(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign).shown
    with pytest.raises(BadInput) as caught:
        submit_answer(user=cast.annotator, public=shown.public, submission=uuid4(), answer={"likert-quality": 9})
    assert [fault.field for fault in caught.value.faults] == ["answer.likert-quality"]
    assert not Judgement.objects.exists()
    assert Assignment.objects.get().state == "open"


def test_uploaded_rating_of_the_same_rater_stays(cast):
    campaign = open_for(cast, items=1, systems=("sys-a",))
    aspect = campaign.aspects.get().aspect
    output = cast.project.outputs.get()
    Rating.objects.create(project=cast.project, output=output, aspect=aspect, rater="p-anna", value=1)
    send(cast.annotator, campaign, hand(cast.annotator, campaign).shown.public, 5)
    assert Rating.objects.get().value == 1
    assert Judgement.objects.get().answer == {"likert-quality": 5}


def test_several_aspects(cast):
    aspects = [{"name": name, "low": 1, "high": 5} for name in ("one", "two", "three")]
    campaign = open_for(cast, aspects=aspects)
    shown = hand(cast.annotator, campaign).shown
    answer = {"one": 1, "two": 2, "three": 3}
    submit_answer(user=cast.annotator, public=shown.public, submission=uuid4(), answer=answer)
    assert dict(Rating.objects.values_list("aspect__name", "value")) == answer


# ---- leases and states ------------------------------------------------------------------------------------


@pytest.mark.promise("overlap", "late")
def test_expired_slot_goes_to_others_only_as_a_last_resort(cast, monkeypatch):
    campaign = open_for(cast, items=1, systems=("sys-a",))
    mine = hand(cast.annotator, campaign).shown
    assert hand(cast.researcher, campaign).why == "empty"
    pass_time(monkeypatch, minutes=31)
    theirs = hand(cast.researcher, campaign).shown
    assert theirs.unit_id == mine.unit_id
    assert Assignment.objects.get(public=mine.public).state == "expired"
    assert Slot.objects.filter(state="taken").count() == 1


def test_returning_after_the_lease_gives_the_same_unit(cast, monkeypatch):
    campaign = open_for(cast, items=1, systems=("sys-a",))
    mine = hand(cast.annotator, campaign).shown
    pass_time(monkeypatch, minutes=31)
    assert return_expired_slots(campaign_id=campaign.pk) == 1
    assert Slot.objects.filter(state="free").count() == 1
    again = hand(cast.annotator, campaign).shown
    assert again.public == mine.public
    assert send(cast.annotator, campaign, again.public).extra is False


def test_reopening_the_page_renews_a_short_lease(cast, monkeypatch):
    campaign = open_for(cast)
    before = hand(cast.annotator, campaign).shown.lease_until
    pass_time(monkeypatch, minutes=20)
    hand(cast.annotator, campaign)
    assert Assignment.objects.get().lease_until > before + timedelta(minutes=15)
    assert return_expired_slots() == 0


@pytest.mark.promise("late")
def test_paused_and_closed(cast):
    campaign = open_for(cast)
    shown = hand(cast.annotator, campaign).shown
    pause_campaign(campaign=campaign, user=cast.researcher)
    assert hand(cast.annotator, campaign).shown.public == shown.public
    sent = send(cast.annotator, campaign, shown.public, then="next")
    assert (sent.next, sent.why) == (None, "paused")
    assert hand(cast.annotator, campaign).why == "paused"
    resume_campaign(campaign=campaign, user=cast.researcher)
    late = hand(cast.annotator, campaign).shown
    close_campaign(campaign=campaign, user=cast.researcher)
    assert send(cast.annotator, campaign, late.public).extra is False
    assert hand(cast.annotator, campaign).why == "closed"


# ---- people -----------------------------------------------------------------------------------------------


def test_only_members_who_may_annotate(cast):
    campaign = open_for(cast)
    with pytest.raises(NotAllowed):
        hand(cast.viewer, campaign)
    with pytest.raises(NotThere):
        hand(cast.stranger, campaign)
    shown = hand(cast.annotator, campaign).shown
    for user in (cast.researcher, cast.viewer, cast.stranger):
        with pytest.raises(NotThere):
            send(user, campaign, shown.public)
    Membership.objects.filter(user=cast.annotator).update(role="viewer")
    with pytest.raises(NotAllowed):
        send(cast.annotator, campaign, shown.public)
    Membership.objects.filter(user=cast.annotator).delete()
    with pytest.raises(NotThere):
        send(cast.annotator, campaign, shown.public)


def test_token_must_have_the_scope(cast):
    campaign = open_for(cast)
    token = ApiToken(user=cast.annotator, name="t", scopes=["read"], expires_at=timezone.now())
    cast.annotator.api_token = token
    with pytest.raises(NotAllowed):
        hand(cast.annotator, campaign)
    token.scopes = ["annotate"]
    assert hand(cast.annotator, campaign).shown
    token.project = cast.foreign
    with pytest.raises(NotThere):
        hand(cast.annotator, campaign)


def test_draft_is_not_open(cast):
    from annotation.services.campaigns import create_campaign

    plan = {"name": "Draft", "kind": "likert", "aspects": ["q"]}
    campaign = create_campaign(project=cast.project, user=cast.researcher, plan=plan)
    with pytest.raises(CampaignNotOpen):
        hand(cast.annotator, campaign)


def test_joining_needs_two_statements_and_keeps_the_seed(cast, django_assert_max_num_queries):
    from annotation.allocation.streams import draw

    campaign = open_for(cast, items=20)
    hand(cast.researcher, campaign)  # reads the cached sheet of the campaign
    # Lookup, the person's role and the campaign's seed, insert, lookup: four; then the usual statements of an
    # assignment.
    with django_assert_max_num_queries(12):
        hand(cast.annotator, campaign)
    member = CampaignMember.objects.get(campaign=campaign, annotator=cast.annotator)
    assert member.seed == draw(campaign.seed, "member", cast.annotator.pk)
    assert member.given == 1
    with pytest.raises(NotAllowed):
        hand(cast.viewer, campaign)
    with pytest.raises(NotThere):
        hand(cast.stranger, campaign)
    assert CampaignMember.objects.filter(campaign=campaign).count() == 2


def test_submit_with_next_needs_few_statements(cast, django_assert_max_num_queries):
    campaign = open_for(cast, items=20)
    shown = hand(cast.annotator, campaign).shown
    shown = send(cast.annotator, campaign, shown.public, then="next").next
    # SQLite sends each statement separately; two are the savepoint of the test's transaction.
    with django_assert_max_num_queries(12):
        send(cast.annotator, campaign, shown.public, then="next")
