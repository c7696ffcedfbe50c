"""Writing under an instruction and a constraint: the kinds of endings in the robustness report."""

from __future__ import annotations

from uuid import uuid4

import pytest

from annotation.models import Reference, WrittenConfirmation, WrittenReference
from annotation.services.writing_answers import SubmissionConflict
from annotation.services.writing_later import (
    confirm_reference,
    get_next_confirmation,
    restore_reference,
    withdraw_reference,
)
from annotation.services.writing_view import get_task_view
from evalapp.accounts.roles import Role
from evalapp.common.errors import BadInput, Conflict, NotThere
from tests.cast import join, person
from tests.writing import fill_ports, open_task_view, send, start_constraint, start_writing

pytestmark = pytest.mark.django_db
ORIGINAL = "Tom drove home and kissed his children."


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    return fill_ports(monkeypatch)


@pytest.fixture
def others(cast):
    found = [person(name) for name in ("ben", "cleo")]
    for user in found:
        join(cast.project, user, Role.ANNOTATOR)
    return found


def start(cast, constraint, **options):
    campaign = start_constraint(cast, constraint, **options)
    Reference.objects.filter(set__name="original").update(text=ORIGINAL)
    return campaign, open_task_view(cast.annotator, campaign)


def test_original_is_shown_and_the_set_holds_written_texts(cast):
    campaign, view = start(cast, "free", instruction="Write another ending.")
    assert (view.originals, view.references, view.shows_scores) == ((ORIGINAL,), (), False)
    assert send(cast.annotator, view, "Tom never came home.").decision == "accept"
    (row,) = Reference.objects.filter(set=campaign.target_set)
    assert row.meta == {"campaign": "more-replies", "constraint": "free", "kind": "HWE"}
    assert get_task_view(user=cast.annotator, public=view.public).state == "done"  # one text is requested


@pytest.mark.parametrize(("constraint", "n"), [("avoid-original-words", 1), ("free", 3)])
def test_only_the_measured_original_is_shown(cast, constraint, n):
    plan = {"kind": "constraint", "evaluator": "", "corpus": "", "options": {"constraint": constraint}}
    campaign = start_writing(cast, references=3, **plan)
    assert len(open_task_view(cast.annotator, campaign).originals) == n


def test_words_of_the_original_are_counted_and_named(cast):
    campaign, view = start(cast, "avoid-original-words")
    with pytest.raises(BadInput, match="children, drove") as error:
        send(cast.annotator, view, "His children saw that he drove off.")
    assert error.value.extra["shared"] == ["children", "drove"]
    send(cast.annotator, view, "He reached the house and hugged the kids.")
    assert Reference.objects.get(set=campaign.target_set).meta["kind"] == "LDHWE"


def test_some_shared_words_may_be_allowed(cast):
    _, view = start(cast, "avoid-original-words", shared_words=1)
    assert send(cast.annotator, view, "The children slept.").decision == "accept"


def test_minimally_wrong_texts_record_the_changed_words(cast):
    campaign, view = start(cast, "minimally-wrong", changed_words=2)
    with pytest.raises(BadInput, match="This is the original"):
        send(cast.annotator, view, ORIGINAL.upper())
    with pytest.raises(BadInput, match="at most 2 words"):
        send(cast.annotator, view, "Nothing of that happened to Tom.")
    send(cast.annotator, view, "Tom drove home and sold his children.")
    meta = Reference.objects.get(set=campaign.target_set).meta
    assert (meta["kind"], meta["changed_words"]) == ("AE", 1)


def vote(user, campaign, for_written, submission=None):
    shown = get_next_confirmation(user=user, campaign_id=campaign.pk)
    written = shown.texts.index("A better ending.")
    better = "ab"[written if for_written else 1 - written]
    return confirm_reference(user=user, public=shown.public, submission=submission or uuid4(), better=better)


def test_better_text_enters_the_set_once_confirmed(cast, others):
    campaign, view = start(cast, "better-than-original", confirmations=2)
    outcome = send(cast.annotator, view, "A better ending.")
    assert "when other annotators have confirmed it" in outcome.message
    assert not Reference.objects.filter(set=campaign.target_set).exists()
    assert outcome.view.references[0].waiting
    assert get_next_confirmation(user=cast.annotator, campaign_id=campaign.pk).public == ""  # not one's own text
    submission = uuid4()
    assert open_task_view(others[0], campaign).to_confirm == 1
    assert vote(others[0], campaign, True, submission).state == "waiting"
    row = WrittenReference.objects.get()
    shown = WrittenConfirmation.objects.get()
    answer = "b" if shown.swapped else "a"
    confirm_reference(user=others[0], public=row.public, submission=submission, better=answer)  # sent twice
    assert WrittenConfirmation.objects.count() == 1
    assert get_next_confirmation(user=others[0], campaign_id=campaign.pk).public == ""
    assert vote(others[1], campaign, True).state == "shown"
    assert Reference.objects.get(set=campaign.target_set).meta["kind"] == "HWEBQ"


def test_unconfirmed_text_frees_its_place(cast, others):
    campaign, view = start(cast, "better-than-original")
    send(cast.annotator, view, "A better ending.")
    assert open_task_view(others[0], campaign).why == "empty"  # the one place stays taken while it waits
    assert vote(others[0], campaign, False).state == "refused"
    assert not Reference.objects.filter(set=campaign.target_set).exists()
    assert open_task_view(others[0], campaign).state == "write"


def test_permission_to_confirm(cast, others):
    campaign, view = start(cast, "better-than-original")
    send(cast.annotator, view, "A better ending.")
    row = WrittenReference.objects.get()
    with pytest.raises(Conflict, match="your own text"):
        confirm_reference(user=cast.annotator, public=row.public, submission=uuid4(), better="a")
    with pytest.raises(NotThere):
        confirm_reference(user=cast.stranger, public=row.public, submission=uuid4(), better="a")
    with pytest.raises(BadInput):
        confirm_reference(user=others[0], public=row.public, submission=uuid4(), better="c")
    vote(others[0], campaign, False)
    with pytest.raises(SubmissionConflict):
        confirm_reference(user=others[0], public=row.public, submission=uuid4(), better="a")


def test_votes_on_a_withdrawn_text_count_once_restored(cast, others):
    campaign, view = start(cast, "better-than-original")
    send(cast.annotator, view, "A better ending.")
    row, shown = WrittenReference.objects.get(), get_next_confirmation(user=others[0], campaign_id=campaign.pk)
    withdraw_reference(user=cast.owner, reference_id=row.pk)
    better = "ab"[shown.texts.index("A better ending.")]
    said = confirm_reference(user=others[0], public=row.public, submission=uuid4(), better=better)
    assert said.state == "withdrawn"
    assert restore_reference(user=cast.owner, reference_id=row.pk).state == "shown"
    assert Reference.objects.get(set=campaign.target_set).text == "A better ending."


def test_withdrawn_pending_text_is_pending_when_restored(cast, others):
    campaign, view = start(cast, "better-than-original")
    send(cast.annotator, view, "A better ending.")
    row = WrittenReference.objects.get()
    withdraw_reference(user=cast.owner, reference_id=row.pk)
    assert get_next_confirmation(user=others[0], campaign_id=campaign.pk).public == ""
    assert restore_reference(user=cast.owner, reference_id=row.pk).state == "waiting"
    assert vote(others[0], campaign, True).state == "shown"
