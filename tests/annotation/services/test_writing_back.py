"""Taking back one's own last text: the restored state, the retained rows, and when it is refused."""

from __future__ import annotations

from uuid import uuid4

import pytest

from annotation.models import (
    Reference,
    WritingAttempt,
    WritingCampaign,
    WritingFlag,
    WritingMember,
    WritingTask,
    WrittenReference,
)
from annotation.selectors.writing import TAKEN_BACK
from annotation.selectors.writing_watch import list_grown_sets, watch
from annotation.services import writing_acts, writing_attempts, writing_back
from annotation.services.campaigns import close_campaign
from annotation.services.hooks import Candidate
from annotation.services.own_data import REASON, withdraw_texts
from annotation.services.writing_acts import finish_task, flag_task, save_draft
from annotation.services.writing_attempts import drop_candidate
from annotation.services.writing_back import NotLast, take_back_last
from annotation.services.writing_candidates import remember_candidates
from annotation.services.writing_later import (
    confirm_reference,
    get_next_confirmation,
    restore_reference,
    withdraw_reference,
)
from annotation.services.writing_view import get_task_view
from evalapp.accounts.roles import Role
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.models import AuditEvent
from tests.cast import join, person
from tests.writing import fill_ports, open_task_view, send, start_constraint, start_writing

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    return fill_ports(monkeypatch)


@pytest.fixture
def other(cast):
    user = person("otto")
    join(cast.project, user, Role.ANNOTATOR)
    return user


def back(user, view):
    return take_back_last(user=user, public=view.last.task, reference=view.last.reference)


def test_text_leaves_the_set_but_keeps_provenance_and_reopens_its_candidate(cast):
    campaign = start_writing(cast, items=1, options={"max_attempts": 1, "target": 4})
    anna, view = cast.annotator, open_task_view(cast.annotator, campaign)
    assert view.last is None
    row = Candidate("A plain reply.", "Question?", 0.5, {"corpus": "replies", "row": 0})
    (candidate,) = remember_candidates(task=view.task, rows=[row])
    view = send(anna, view, "A good reply.", candidate=candidate).view
    assert (view.last.task, view.last.text) == (view.public, "A good reply.")
    first = view.last
    view = back(anna, view)
    assert [row.text for row in view.references] == ["Answer 0 to i000."]
    assert (view.last, view.round, view.growth) == (None, 0, ())
    assert view.draft == {"text": "A good reply.", "candidate": candidate, "relevant": None}
    written = WrittenReference.objects.get()
    assert (written.state, written.reason, written.withdrawn_by) == ("withdrawn", TAKEN_BACK, anna)
    assert WritingAttempt.objects.get().decision == "accept"
    assert WritingMember.objects.get().accepted == 0
    assert [event.verb for event in AuditEvent.objects.filter(actor=anna)][:1] == ["reference.withdrawn"]
    # Sent twice, it is taken back once; the edit was not used.
    take_back_last(user=anna, public=first.task, reference=first.reference)
    assert WritingMember.objects.get().accepted == 0
    assert view.attempts_left == 1
    assert send(anna, view, "A good reply, better said.", candidate=candidate).decision == "accept"
    seen = watch(user=cast.researcher, campaign=campaign)
    assert (seen.people[0].accepted, seen.people[0].taken_back, seen.people[0].attempts) == (1, 1, 2)
    assert [(point.round, point.mean) for point in seen.by_person["p-anna"]] == [(0, 0.0), (1, 0.125)]
    assert list_grown_sets(campaign=campaign)[0].added == ((1, "A good reply, better said."),)
    restore_reference(user=cast.researcher, reference_id=written.pk)
    assert WritingMember.objects.get().accepted == 2
    withdraw_texts(user=anna)
    assert list_grown_sets(campaign=campaign)[0].added == ()  # no empty references


def test_taken_back_text_stays_so_when_texts_are_withdrawn(cast):
    campaign = start_writing(cast, items=1, options={"target": 4})
    view = send(cast.annotator, open_task_view(cast.annotator, campaign), "A good reply.").view
    send(cast.annotator, back(cast.annotator, view), "A good reply, better said.")
    before = watch(user=cast.researcher, campaign=campaign).wire()
    withdraw_texts(user=cast.annotator)
    after = watch(user=cast.researcher, campaign=campaign).wire()
    assert (after["people"][0]["taken_back"], after["by_person"]) == (1, before["by_person"])
    assert [row.reason for row in WrittenReference.objects.order_by("pk")] == [
        TAKEN_BACK, REASON,
    ]  # fmt: skip
    assert not WrittenReference.objects.exclude(text="").exists()


def test_editor_text_stays_when_going_back_step_by_step(cast):
    campaign = start_writing(cast, items=1, options={"target": 9})
    anna = cast.annotator
    view = send(anna, open_task_view(anna, campaign), "A good one.").view
    earlier = view.last
    view = send(anna, view, "Another good one.").view
    with pytest.raises(NotLast, match="another text since"):
        take_back_last(user=anna, public=view.public, reference=earlier.reference)
    WritingTask.objects.update(draft={"text": "Half a"})
    view = back(anna, view)
    assert view.draft == {"text": "Half a"}
    assert view.last == earlier
    assert back(anna, view).last is None
    assert Reference.objects.filter(set=campaign.target_set).count() == 1


def test_completed_item_reopens_while_the_next_is_untouched(cast):
    campaign = start_writing(cast, items=2, options={"target": 2})
    anna, member = cast.annotator, WritingMember.objects
    view = send(anna, open_task_view(anna, campaign), "A good one.").view
    assert view.state == "done"
    following = open_task_view(anna, campaign)
    assert following.public != view.public
    assert following.last == view.last
    view = back(anna, following)
    assert (view.state, view.task.why, member.get().done) == ("write", "", 0)
    assert open_task_view(anna, campaign).public == view.public
    # The next item was untouched, so its assignment is undone.
    assert WritingTask.objects.count() == 1
    send(anna, view, "A good one.")
    following = open_task_view(anna, campaign)
    last = following.last
    outcome = send(anna, following, "Nothing.")
    assert (outcome.decision, outcome.view.last) == ("edit", None)
    with pytest.raises(NotLast, match="started the next item"):
        take_back_last(user=anna, public=last.task, reference=last.reference)


def test_allowed_at_the_campaigns_end_but_not_after_done_or_close(cast):
    campaign = start_writing(cast, items=1, options={"target": 2})
    anna = cast.annotator
    send(anna, open_task_view(anna, campaign), "A good one.")
    end = open_task_view(anna, campaign)
    assert (end.task, end.last.text) == (None, "A good one.")
    view = back(anna, end)
    assert view.state == "write"
    finish_task(user=anna, public=view.public)
    assert get_task_view(user=anna, public=view.public).last is None
    WritingTask.objects.update(state="open", why="", closed_at=None)
    last = send(anna, view, "A good one.").view.last
    close_campaign(user=cast.researcher, campaign=campaign)
    with pytest.raises(NotLast, match="closed"):
        take_back_last(user=anna, public=last.task, reference=last.reference)


def test_nobody_takes_back_another_persons_text(cast, other):
    campaign = start_writing(cast, items=1, options={"target": 3})
    mine = send(cast.annotator, open_task_view(cast.annotator, campaign), "A good one.").view
    theirs = open_task_view(other, campaign)
    assert theirs.last is None
    with pytest.raises(BadInput, match="no such text"):
        take_back_last(user=other, public=theirs.public, reference=mine.last.reference)
    with pytest.raises(NotThere):
        take_back_last(user=other, public=mine.public, reference=mine.last.reference)
    # A full item was closed for both people: the one who takes back continues, and the place is free again.
    assert send(other, theirs, "Another good one.").view.state == "done"
    assert back(cast.annotator, get_task_view(user=cast.annotator, public=mine.public)).state == "write"
    assert dict(WritingTask.objects.values_list("public", "state")) == {mine.public: "open", theirs.public: "done"}


def test_refused_once_another_person_has_compared_it(cast, other):
    campaign = start_constraint(cast, "better-than-original", confirmations=2)
    view = send(cast.annotator, open_task_view(cast.annotator, campaign), "A better one.").view
    back(cast.annotator, view)
    view = send(cast.annotator, view, "A better one.").view
    shown = get_next_confirmation(user=other, campaign_id=campaign.pk)
    confirm_reference(user=other, public=shown.public, submission=uuid4(), better="a")
    assert get_task_view(user=cast.annotator, public=view.public).last is None
    with pytest.raises(NotLast, match="Another annotator has already compared"):
        back(cast.annotator, view)


def test_refused_once_the_campaign_was_closed_meanwhile(cast, monkeypatch):
    campaign = start_writing(cast, items=1)
    last = send(cast.annotator, open_task_view(cast.annotator, campaign), "A good one.").view.last
    read = writing_back.get_own_task

    def read_and_wait(**which):
        task = read(**which)
        close_campaign(user=cast.researcher, campaign=campaign)
        return task

    monkeypatch.setattr(writing_back, "get_own_task", read_and_wait)
    with pytest.raises(NotLast, match="closed"):
        take_back_last(user=cast.annotator, public=last.task, reference=last.reference)
    assert WrittenReference.objects.get().state == "shown"


@pytest.mark.parametrize("act", ["draft", "text"])
def test_user_at_a_returned_item_is_informed(cast, monkeypatch, act):
    """A text is taken back in one tab, which removes the following item; the other tab had just started that item."""
    view = open_task_view(cast.annotator, start_writing(cast, items=1))
    room = {"draft": writing_acts, "text": writing_attempts}[act]
    acts = {
        "draft": lambda: save_draft(user=cast.annotator, public=view.public, draft={"text": "Begun"}, version=0),
        "text": lambda: send(cast.annotator, view, "A good one."),
    }
    read = room.get_own_task

    def read_and_wait(**which):
        task = read(**which)
        WritingTask.objects.all().delete()
        return task

    monkeypatch.setattr(room, "get_own_task", read_and_wait)
    with pytest.raises(NotThere, match="no such task"):
        acts[act]()


def test_in_rounds_only_while_others_are_in_the_round(cast, other):
    campaign = start_writing(cast, items=1, options={"mode": "rounds", "group_size": 2})
    anna = cast.annotator
    mine, theirs = open_task_view(anna, campaign), open_task_view(other, campaign)
    waits = send(anna, mine, "A good one.", candidate=mine.candidate.public).view
    assert waits.state == "wait"
    again = back(anna, waits)
    assert (again.state, again.round, again.candidate) == ("write", 0, mine.candidate)
    waits = send(anna, again, "A good one.", candidate=again.candidate.public).view
    assert [point.round for point in watch(user=cast.researcher, campaign=campaign).by_person["p-anna"]] == [0, 1]
    drop_candidate(user=other, public=theirs.public, submission=uuid4(), candidate=theirs.candidate.public)
    assert get_task_view(user=anna, public=mine.public).last is None
    with pytest.raises(NotLast, match="next round has started"):
        back(anna, waits)


# ---- a place that is free again ---------------------------------------------------------------------------


def test_full_item_reopens_when_a_place_becomes_free(cast, other):
    campaign = start_writing(cast, items=1, options={"target": 2})
    anna, theirs = cast.annotator, open_task_view(other, campaign)
    mine = send(anna, open_task_view(anna, campaign), "A good one.").view
    ended = get_task_view(user=other, public=theirs.public)
    assert (ended.state, ended.task.why, ended.done) == ("done", "full", 1)
    assert open_task_view(other, campaign).why == "empty"
    back(anna, mine)
    again = open_task_view(other, campaign)
    assert (again.public, again.state, again.done) == (theirs.public, "write", 0)
    assert send(other, again, "Another good one.").view.state == "done"
    assert sorted(WritingMember.objects.values_list("done", flat=True)) == [1, 1]
    # Withdrawn by the person who runs the campaign: both may continue, even where each person gets only one item.
    WritingCampaign.objects.update(max_per_annotator=1)
    withdraw_reference(user=cast.researcher, reference_id=WrittenReference.objects.get(state="shown").pk)
    assert {open_task_view(user, campaign).state for user in (anna, other)} == {"write"}


def test_item_ended_by_oneself_does_not_return(cast, other):
    campaign = start_writing(cast, items=1, options={"target": 2})
    theirs = open_task_view(other, campaign)
    finish_task(user=other, public=theirs.public)
    mine = send(cast.annotator, open_task_view(cast.annotator, campaign), "A good one.").view
    back(cast.annotator, mine)
    assert open_task_view(other, campaign).why == "empty"


def test_refused_text_frees_its_place(cast, other):
    campaign = start_constraint(cast, "better-than-original", confirmations=1, target=1)
    view = send(cast.annotator, open_task_view(cast.annotator, campaign), "A worse one.").view
    assert view.state == "done"
    shown = get_next_confirmation(user=other, campaign_id=campaign.pk)
    better = "ab"[shown.texts.index("Answer 0 to i000.")]
    confirm_reference(user=other, public=shown.public, submission=uuid4(), better=better)
    assert open_task_view(cast.annotator, campaign).public == view.public


def test_refused_once_the_next_item_is_flagged(cast):
    campaign = start_writing(cast, items=2, options={"target": 2})
    anna = cast.annotator
    send(anna, open_task_view(anna, campaign), "A good reply.")
    view = open_task_view(anna, campaign)  # the next item; the first is full
    assert view.last is not None
    last = view.last
    flag_task(user=anna, public=view.public, reason="broken", text="cut off")
    with pytest.raises(NotLast, match="started the next item"):
        take_back_last(user=anna, public=last.task, reference=last.reference)
    assert WritingFlag.objects.filter(task=view.task).exists()
