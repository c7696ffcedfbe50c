from __future__ import annotations

from uuid import uuid4

import pytest

from annotation.models import Reference, ReferenceSet, WritingAttempt, WritingMember, WritingTask, WrittenReference
from annotation.selectors.writing import get_own_task, list_writing, set_texts
from annotation.services import writing_attempts
from annotation.services.campaigns import (
    close_campaign,
    create_writing,
    delete_campaign,
    open_campaign,
    pause_campaign,
    resume_campaign,
    update_campaign,
)
from annotation.services.hooks import Candidate
from annotation.services.judging_acts import StaleDraft
from annotation.services.writing_acts import finish_task, save_draft, skip_task
from annotation.services.writing_answers import CandidateClosed, SubmissionConflict, TaskClosed
from annotation.services.writing_attempts import drop_candidate
from annotation.services.writing_candidates import remember_candidates
from annotation.services.writing_handout import get_next_task
from annotation.services.writing_later import restore_reference, withdraw_reference
from annotation.services.writing_view import check_right, get_task_view
from evalapp.accounts.roles import Role
from evalapp.common.errors import BadInput, Conflict, NotAllowed, NotThere
from evalapp.common.models import AuditEvent
from tests.cast import join, person
from tests.writing import draft_writing, fill_ports, open_task_view, send, start_writing

pytestmark = pytest.mark.django_db


@pytest.fixture
def fake(monkeypatch):
    return fill_ports(monkeypatch)


@pytest.fixture
def other(cast):
    user = person("otto")
    join(cast.project, user, Role.ANNOTATOR)
    return user


def offered(view, text="A plain reply.", n=0):
    return remember_candidates(
        task=view.task, rows=[Candidate(text, "Question?", 0.5, {"corpus": "replies", "row": n})]
    )[0]


# ---- the campaign -------------------------------------------------------------------------------------------


def test_opening_creates_units_and_copies_the_start_set(cast, fake):
    campaign = start_writing(cast, items=3, references=2, options={"target": 4})
    assert (campaign.state, campaign.unit_count, campaign.target_set.name) == ("open", 3, "more-replies")
    original = Reference.objects.filter(set__name="original").order_by("item", "position").values_list("item", "text")
    copied = Reference.objects.filter(set=campaign.target_set).order_by("item", "position").values_list("item", "text")
    assert list(copied) == list(original)
    with pytest.raises(Conflict, match="Only a draft"):
        open_campaign(user=cast.researcher, campaign=campaign)


def test_items_with_enough_references_are_left_out(cast, fake):
    campaign = draft_writing(cast, items=2, references=2, options={"target": 2})
    with pytest.raises(BadInput, match="raise the target"):
        open_campaign(user=cast.researcher, campaign=campaign)
    Reference.objects.filter(item__key="i001", position=1).delete()
    assert open_campaign(user=cast.researcher, campaign=campaign).unit_count == 1


def test_existing_set_of_that_name_is_never_taken_over(cast, fake):
    campaign = draft_writing(cast)
    ReferenceSet.objects.create(project=cast.project, name="more-replies")
    with pytest.raises(Conflict, match="already a reference set"):
        open_campaign(user=cast.researcher, campaign=campaign)
    campaign.refresh_from_db()
    assert (campaign.state, campaign.units.count()) == ("draft", 0)


def test_unknown_evaluator_corpus_or_set_is_reported(cast, fake):
    campaign = draft_writing(cast, evaluator="gone", corpus="gone")
    with pytest.raises(BadInput) as error:
        open_campaign(user=cast.researcher, campaign=campaign)
    assert [fault.field for fault in error.value.faults] == ["evaluator", "corpus"]
    with pytest.raises(BadInput, match="no reference set"):
        create_writing(user=cast.researcher, project=cast.project, plan={"name": "x", "start_set": "gone"})
    with pytest.raises(Conflict, match="already a campaign"):
        create_writing(user=cast.researcher, project=cast.project, plan={"name": "More replies"})


def test_changes_allowed_before_and_after_opening(cast, fake):
    campaign = draft_writing(cast)
    campaign = update_campaign(user=cast.researcher, campaign=campaign, changes={"options": {"target": 5}})
    assert campaign.options["target"] == 5
    campaign = update_campaign(user=cast.researcher, campaign=campaign, changes={"kind": "constraint"})
    assert campaign.options["constraint"] == "free"
    campaign = update_campaign(user=cast.researcher, campaign=campaign, changes={"kind": "ream"})
    open_campaign(user=cast.researcher, campaign=campaign)
    assert update_campaign(user=cast.researcher, campaign=campaign, changes={"name": "New"}).name == "New"
    with pytest.raises(BadInput, match="fixed once"):
        update_campaign(user=cast.researcher, campaign=campaign, changes={"options": {"target": 6}})


def test_only_unwritten_campaigns_can_be_deleted(cast, fake):
    campaign = start_writing(cast)
    view = open_task_view(cast.annotator, campaign)
    send(cast.annotator, view, "plain")
    with pytest.raises(Conflict, match="Close it instead"):
        delete_campaign(user=cast.researcher, campaign=campaign)
    WritingAttempt.objects.all().delete()
    delete_campaign(user=cast.researcher, campaign=campaign)
    assert set(ReferenceSet.objects.values_list("name", flat=True)) == {"original"}


def test_campaign_stays_while_another_starts_from_its_references(cast, fake):
    campaign = start_writing(cast)
    second = start_writing(cast, items=0, slug="second", start_set=campaign.target_set.name)
    with pytest.raises(Conflict, match="Another writing campaign starts from"):
        delete_campaign(user=cast.researcher, campaign=campaign)
    assert {row.slug: row.member_count for row in list_writing(project=cast.project)} == {campaign.slug: 0, "second": 0}
    delete_campaign(user=cast.researcher, campaign=second)
    delete_campaign(user=cast.researcher, campaign=campaign)
    assert set(ReferenceSet.objects.values_list("name", flat=True)) == {"original"}


def test_list_counts_members_and_references(cast, fake):
    campaign = start_writing(cast, items=1, options={"target": 4})
    for user in (cast.annotator, cast.researcher):
        view = open_task_view(user, campaign)
        for word in ("one", "two"):
            if view.state == "write":
                view = send(user, view, f"A good {word} by {user}.").view
    withdraw_reference(user=cast.researcher, reference_id=WrittenReference.objects.first().pk)
    (row,) = list_writing(project=cast.project)
    assert (row.member_count, row.written_count) == (2, 2)


@pytest.mark.parametrize("name", ["\0", "\ud800", "x\0y"])
def test_candidate_that_cannot_be_looked_up_was_not_offered(cast, fake, name):
    view = open_task_view(cast.annotator, start_writing(cast))
    with pytest.raises(BadInput, match="was not offered"):
        send(cast.annotator, view, "A good one.", candidate=name)
    with pytest.raises(BadInput, match="was not offered"):
        drop_candidate(user=cast.annotator, public=view.public, submission=uuid4(), candidate=name)


def test_whole_project_can_still_be_deleted(cast, fake):
    campaign = start_writing(cast)
    send(cast.annotator, open_task_view(cast.annotator, campaign), "a good one")
    cast.project.delete()
    assert not WrittenReference.objects.exists()


# ---- who may write ------------------------------------------------------------------------------------------


def test_strangers_and_viewers_cannot_write(cast, fake):
    campaign = draft_writing(cast)
    with pytest.raises(Conflict, match="not open yet"):
        get_next_task(user=cast.annotator, campaign_id=campaign.pk)
    open_campaign(user=cast.researcher, campaign=campaign)
    with pytest.raises(NotThere):
        get_next_task(user=cast.stranger, campaign_id=campaign.pk)
    with pytest.raises(NotAllowed):
        get_next_task(user=cast.viewer, campaign_id=campaign.pk)
    view = open_task_view(cast.annotator, campaign)
    with pytest.raises(NotThere):
        get_task_view(user=cast.owner, public=view.public)
    with pytest.raises(NotThere):
        send(cast.owner, view, "a good one")


def test_one_open_item_at_a_time_until_none_is_left(cast, fake):
    campaign = start_writing(cast, items=2)
    first = open_task_view(cast.annotator, campaign)
    assert open_task_view(cast.annotator, campaign).public == first.public
    finish_task(user=cast.annotator, public=first.public)
    second = open_task_view(cast.annotator, campaign)
    assert second.task.unit_id != first.task.unit_id
    skip_task(user=cast.annotator, public=second.public, reason="Not a question.")
    last = open_task_view(cast.annotator, campaign)
    assert (last.task, last.why, last.done) == (None, "empty", 1)
    assert finish_task(user=cast.annotator, public=first.public).state == "done"  # repeating has no effect
    assert WritingMember.objects.get().done == 1


def test_people_are_spread_over_the_items(cast, fake, other):
    campaign = start_writing(cast, items=2)
    assert open_task_view(cast.annotator, campaign).task.unit_id != open_task_view(other, campaign).task.unit_id


def test_limit_per_person(cast, fake):
    campaign = start_writing(cast, items=3, max_per_annotator=1)
    finish_task(user=cast.annotator, public=open_task_view(cast.annotator, campaign).public)
    assert open_task_view(cast.annotator, campaign).why == "limit"


# ---- the rules, enforced by the server ----------------------------------------------------------------------


def test_text_is_accepted_when_the_set_improves(cast, fake):
    campaign = start_writing(cast)
    view = open_task_view(cast.annotator, campaign)
    outcome = send(cast.annotator, view, "  A good answer. ", seconds=12.5)
    assert (outcome.decision, outcome.score_before, outcome.score_after, outcome.improved) == ("accept", 0, 0.125, True)
    row = WrittenReference.objects.get()
    assert (row.text, row.gain, row.reference.position) == ("A good answer.", 0.125, 1)
    assert row.reference.meta == {"campaign": "more-replies"}
    assert [(r.text, r.gain, r.mine) for r in outcome.view.references][1] == ("A good answer.", 0.125, True)
    assert outcome.view.growth == ((2, 0.125),)
    attempt = WritingAttempt.objects.get()
    assert (attempt.signature, attempt.references_before, attempt.seconds) == ("fake|1", 1, 12.5)


def test_candidate_is_dropped_after_three_edits(cast, fake):
    campaign = start_writing(cast)
    view = open_task_view(cast.annotator, campaign)
    candidate = offered(view)
    found = [
        send(cast.annotator, view, text, candidate=candidate, relevant=True)
        for text in ("A plain reply.", "Plain one.", "Plain two.", "Plain three.")
    ]
    assert [(one.decision, one.attempts_left) for one in found] == [("edit", 3), ("edit", 2), ("edit", 1), ("drop", 0)]
    assert "3 attempts left" in found[0].message
    assert found[1].view.attempts_left == 2  # referred to by the candidate in the draft
    assert found[1].view.draft["text"] == "Plain one."
    with pytest.raises(CandidateClosed):
        send(cast.annotator, view, "A good one after all.", candidate=candidate)
    rows = WritingAttempt.objects.order_by("number").values_list("text_before", "text", "counted")
    assert list(rows)[:3] == [
        ("A plain reply.", "A plain reply.", False),
        ("A plain reply.", "Plain one.", True),
        ("Plain one.", "Plain two.", True),
    ]
    assert len(set_texts(get_own_task(user=cast.annotator, public=view.public))) == 1


def test_irrelevant_candidate_is_edited_first(cast, fake):
    campaign = start_writing(cast)
    view = open_task_view(cast.annotator, campaign)
    candidate = offered(view, "A good reply to something else.")
    first = send(cast.annotator, view, "A good reply to something else.", candidate=candidate, relevant=False)
    assert (first.decision, first.why, first.improved) == ("edit", "irrelevant", True)
    second = send(cast.annotator, view, "A good reply to this.", candidate=candidate, relevant=False)
    assert second.decision == "accept"
    assert WritingAttempt.objects.last().source["row"] == 0


def test_server_scores_the_current_set_and_ignores_the_browser(cast, fake, other):
    campaign = start_writing(cast, items=1)
    mine, theirs = open_task_view(cast.annotator, campaign), open_task_view(other, campaign)
    fake.before_answer = lambda: send(other, theirs, "Their good answer.")
    outcome = send(cast.annotator, mine, "My good answer.")
    assert (outcome.score_before, outcome.score_after) == (0.125, 0.25)  # the set includes the other person's text
    assert [row.text for row in outcome.view.references] == [
        "Answer 0 to i000.",
        "Their good answer.",
        "My good answer.",
    ]
    assert outcome.view.references[1].added_by_other
    assert fake.asked == 3


def test_without_a_score_the_text_is_a_draft_and_can_be_added(cast, fake):
    campaign = start_writing(cast)
    view = open_task_view(cast.annotator, campaign)
    fake.down = True
    submission = uuid4()
    waiting = send(cast.annotator, view, "A good answer.", submission=submission)
    assert (waiting.decision, waiting.score_after) == ("wait", None)
    assert "No score available" in waiting.message
    assert waiting.view.draft["text"] == "A good answer."
    assert not WritingAttempt.objects.exists()
    added = send(cast.annotator, view, "A good answer.", unscored=True)
    assert (added.decision, added.improved, added.message) == ("accept", None, "Added without a score.")
    assert WritingAttempt.objects.get().unscored
    fake.down = False
    assert send(cast.annotator, view, "A good one later.", submission=submission).decision == "accept"


def test_adding_without_a_score_does_not_bypass_a_score(cast, fake):
    view = open_task_view(cast.annotator, start_writing(cast))
    assert send(cast.annotator, view, "A plain text.", unscored=True).decision == "edit"
    assert not WritingAttempt.objects.get().unscored


def test_first_reference_of_an_item_without_any(cast, fake):
    campaign = start_writing(cast, references=0)
    outcome = send(cast.annotator, open_task_view(cast.annotator, campaign), "Anything.")
    assert (outcome.decision, outcome.score_before, outcome.score_after) == ("accept", None, 0)


def test_same_text_twice_is_refused(cast, fake):
    view = open_task_view(cast.annotator, start_writing(cast))
    send(cast.annotator, view, "A good answer.")
    with pytest.raises(BadInput, match="already has this text"):
        send(cast.annotator, view, "a GOOD  answer.")
    for text in ("", "  ", "x" * 10_001, "\x00"):
        with pytest.raises(BadInput):
            send(cast.annotator, view, text)


def test_last_place_completes_the_item_for_all(cast, fake, other):
    campaign = start_writing(cast, items=1, options={"target": 2})
    mine, theirs = open_task_view(cast.annotator, campaign), open_task_view(other, campaign)
    assert send(cast.annotator, mine, "A good answer.").view.state == "done"
    with pytest.raises(TaskClosed, match="has its 2 references"):
        send(other, theirs, "Another good answer.")
    view = get_task_view(user=other, public=theirs.public)
    assert (view.state, view.task.why, view.draft["text"]) == ("done", "full", "Another good answer.")
    assert sorted(WritingMember.objects.values_list("done", "accepted")) == [(1, 0), (1, 1)]


# ---- arms ---------------------------------------------------------------------------------------------------


def test_each_arm_adds_to_its_own_set_and_sees_no_other(cast, fake, other):
    campaign = start_writing(cast, items=1, options={"arms": ["scores", "control"]})
    assert campaign.target_set is None
    views = {
        view.task.arm: (user, view) for user in (cast.annotator, other) for view in [open_task_view(user, campaign)]
    }
    user, view = views["control"]
    assert (view.shows_scores, view.shows_candidates, view.allows_edit) == (False, True, True)
    outcome = send(user, view, "A bad answer.")
    assert (outcome.decision, outcome.score_after, outcome.improved) == ("accept", None, None)
    assert outcome.view.growth == ()
    assert outcome.view.references[1].gain is None
    assert WritingAttempt.objects.get().score_after == -0.125  # retained for comparing the arms
    user, view = views["scores"]
    assert [row.text for row in get_task_view(user=user, public=view.public).references] == ["Answer 0 to i000."]
    assert send(user, view, "A bad answer.").decision == "edit"
    assert set(ReferenceSet.objects.values_list("name", flat=True)) == {
        "original", "more-replies-scores", "more-replies-control",
    }  # fmt: skip
    assert "control" not in str(view.wire())


def test_arms_by_item_share_one_set(cast, fake):
    campaign = start_writing(cast, items=4, options={"arms": ["scores", "control"], "assign": "item"})
    assert campaign.target_set.name == "more-replies"
    assert sorted(campaign.units.values_list("arm", flat=True)) == ["control", "control", "scores", "scores"]
    view = open_task_view(cast.annotator, campaign)
    assert view.task.arm == view.task.unit.arm


def test_candidates_arm_accepts_candidates_unchanged(cast, fake):
    view = open_task_view(cast.annotator, start_writing(cast, options={"arms": ["candidates"]}))
    candidate = offered(view)
    assert not view.allows_own_text
    with pytest.raises(NotAllowed, match="as they are"):
        send(cast.annotator, view, "A plain reply, edited.", candidate=candidate)
    with pytest.raises(NotAllowed, match="as they are"):
        send(cast.annotator, view, "My own.")
    assert send(cast.annotator, view, "A plain reply.", candidate=candidate).decision == "accept"


def test_own_texts_can_be_forbidden_and_only_offered_candidates_count(cast, fake, other):
    campaign = start_writing(cast, items=1, options={"own_text": False})
    view, theirs = open_task_view(cast.annotator, campaign), open_task_view(other, campaign)
    with pytest.raises(NotAllowed, match="Start with a candidate"):
        send(cast.annotator, view, "My own good text.")
    for wrong in (offered(theirs), "nothing"):
        with pytest.raises(BadInput, match="not offered here"):
            send(cast.annotator, view, "A good reply.", candidate=wrong)
    assert offered(view) == offered(view)


# ---- nothing lost, nothing doubled --------------------------------------------------------------------------


def test_repeated_submission_returns_the_first_answer(cast, fake):
    view = open_task_view(cast.annotator, start_writing(cast))
    submission = uuid4()
    first = send(cast.annotator, view, "A good answer.", submission=submission)
    again = send(cast.annotator, view, "A good answer.", submission=submission)
    assert (again.decision, again.score_after, again.repeated) == (first.decision, first.score_after, True)
    assert WrittenReference.objects.count() == 1
    with pytest.raises(SubmissionConflict) as error:
        send(cast.annotator, view, "Another good answer.", submission=submission)
    assert error.value.extra["stored"]["text"] == "A good answer."


@pytest.mark.parametrize("target", [2, 8])
@pytest.mark.parametrize("dropped", [False, True])
def test_same_submission_stored_by_another_request_meanwhile(cast, fake, monkeypatch, target, dropped):
    """The second request has found no earlier outcome when the first one is stored: with the text in the set, the
    candidate used up or the item complete, it still returns the first outcome."""
    view = open_task_view(cast.annotator, start_writing(cast, options={"target": target}))
    candidate, submission = offered(view), uuid4()

    def act():
        if dropped:
            return drop_candidate(user=cast.annotator, public=view.public, submission=submission, candidate=candidate)
        return send(cast.annotator, view, "A good reply.", candidate=candidate, submission=submission)

    def store_first(*arguments):
        monkeypatch.setattr(writing_attempts, "check_right", check_right)
        first.append(act())

    first = []
    monkeypatch.setattr(writing_attempts, "check_right", store_first)
    again = act()
    assert (again.decision, again.message) == (first[0].decision, first[0].message)
    assert (first[0].repeated, again.repeated) == (False, True)
    assert WritingAttempt.objects.count() == 1
    assert get_task_view(user=cast.annotator, public=view.public).draft is None


def test_draft_save_is_compare_and_set(cast, fake):
    view = open_task_view(cast.annotator, start_writing(cast))
    draft = {"text": "I think", "candidate": None}
    saved = save_draft(user=cast.annotator, public=view.public, draft=draft, version=view.version)
    assert saved.version == 1
    assert (
        save_draft(user=cast.annotator, public=view.public, draft=draft, version=0).version == 1
    )  # the response was lost
    with pytest.raises(StaleDraft):
        save_draft(user=cast.annotator, public=view.public, draft={"text": "other"}, version=0)
    assert get_task_view(user=cast.annotator, public=view.public).draft == draft
    for wrong in ("text", {"text": "x" * 70_000}, {"text": "\x00"}):
        with pytest.raises(BadInput):
            save_draft(user=cast.annotator, public=view.public, draft=wrong, version=1)


def test_paused_and_closed_in_the_middle(cast, fake, other):
    campaign = start_writing(cast)
    view = open_task_view(cast.annotator, campaign)
    pause_campaign(user=cast.researcher, campaign=campaign)
    assert send(cast.annotator, view, "A good answer.").decision == "accept"
    assert open_task_view(other, campaign).why == "paused"
    resume_campaign(user=cast.researcher, campaign=campaign)
    close_campaign(user=cast.researcher, campaign=campaign)
    with pytest.raises(TaskClosed, match="closed"):
        send(cast.annotator, view, "Too good, too late.")
    assert get_task_view(user=cast.annotator, public=view.public).draft["text"] == "Too good, too late."
    with pytest.raises(Conflict, match="not possible"):
        resume_campaign(user=cast.researcher, campaign=campaign)


def test_discarded_candidate_is_recorded_as_an_attempt(cast, fake):
    view = open_task_view(cast.annotator, start_writing(cast))
    candidate, submission = offered(view), uuid4()
    first = drop_candidate(user=cast.annotator, public=view.public, submission=submission, candidate=candidate)
    again = drop_candidate(user=cast.annotator, public=view.public, submission=submission, candidate=candidate)
    assert (first.decision, again.repeated) == ("drop", True)
    row = WritingAttempt.objects.get()
    assert (row.decision, row.text, row.candidate_text) == ("drop", "", "A plain reply.")
    with pytest.raises(SubmissionConflict):
        send(cast.annotator, view, "A good reply.", submission=submission)
    with pytest.raises(CandidateClosed):
        drop_candidate(user=cast.annotator, public=view.public, submission=uuid4(), candidate=candidate)


def test_withdraw_and_restore_are_audited(cast, fake):
    campaign = start_writing(cast)
    view = open_task_view(cast.annotator, campaign)
    send(cast.annotator, view, "A good answer.")
    row = WrittenReference.objects.get()
    with pytest.raises(NotAllowed):
        withdraw_reference(user=cast.annotator, reference_id=row.pk)
    for _ in range(2):
        row = withdraw_reference(user=cast.researcher, reference_id=row.pk, reason="A name in it.")
    assert (row.state, row.reference) == ("withdrawn", None)
    assert not Reference.objects.filter(text="A good answer.").exists()
    assert len(get_task_view(user=cast.annotator, public=view.public).references) == 1
    for _ in range(2):
        row = restore_reference(user=cast.researcher, reference_id=row.pk)
    assert (row.state, row.reference.text, row.reason) == ("shown", "A good answer.", "")
    verbs = AuditEvent.objects.filter(verb__startswith="reference.").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["reference.withdrawn", "reference.restored"]


def test_finished_item_takes_no_more(cast, fake):
    view = open_task_view(cast.annotator, start_writing(cast))
    finish_task(user=cast.annotator, public=view.public)
    with pytest.raises(TaskClosed, match="finished this item"):
        send(cast.annotator, view, "A good answer.")
    with pytest.raises(Conflict):
        skip_task(user=cast.annotator, public=view.public)
    assert WritingTask.objects.get().draft["text"] == "A good answer."
