"""`count_violations` finds every possible violation. tests/faults/test_crowd.py runs a crowd."""

from __future__ import annotations

import uuid

import pytest

from annotation.models import Assignment, Judgement, Rating, Slot
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.accounts.models import User
from tests.services.annotators import count_violations, make_crowd_project, summarize_times

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged():
    """(campaign, confirmed answers): two annotators have judged two texts each."""
    campaign = make_crowd_project(3, ["one", "two"], "any-password", overlap=2)
    confirmed = {}
    for user in User.objects.filter(username__in=["one", "two"]).order_by("pk"):
        for _ in range(2):
            shown = get_next_assignment(user=user, campaign_id=campaign).shown
            submission, answer = uuid.uuid4(), {"quality": 3}
            submit_answer(user=user, public=shown.public, submission=submission, answer=answer)
            confirmed[submission.hex] = (shown.public, answer)
    return campaign, confirmed


def get_violations(judged) -> dict[str, int]:
    return {name: count for name, count in count_violations(*judged).items() if count and name != "stored"}


def test_correct_answers_are_no_violation(judged):
    assert count_violations(*judged)["stored"] == 4
    assert get_violations(judged) == {}


def test_lost_and_changed_answers_are_found(judged):
    campaign, confirmed = judged
    assert get_violations((campaign, {**confirmed, uuid.uuid4().hex: ("x", {"quality": 1})})) == {"lost": 1}
    number, (public, _) = next(iter(confirmed.items()))
    assert get_violations((campaign, {**confirmed, number: (public, {"quality": 1})})) == {"changed": 1}


def test_forbidden_database_states_are_found(judged):
    Rating.objects.filter(judgement=Judgement.objects.first().pk).delete()
    assert get_violations(judged) == {"without_rating": 1}
    Judgement.objects.filter(pk=Judgement.objects.last().pk).update(extra=True)
    assert get_violations(judged)["extra"] == 1
    Slot.objects.filter(pk=Assignment.objects.exclude(slot=None).first().slot_id).update(state="free")
    assert get_violations(judged)["slots_wrong"] == 1
    copy = Judgement.objects.order_by("pk").first()
    copy.pk, copy.version, copy.submission = None, 2, uuid.uuid4()
    copy.save()
    assert get_violations(judged)["doubled"] == 1


def test_times_are_summarized_in_milliseconds():
    assert summarize_times([]) == {"n": 0}
    assert summarize_times([k / 1000 for k in range(1, 101)]) == {
        "n": 100, "p50_ms": 51.0, "p95_ms": 96.0, "p99_ms": 100.0, "max_ms": 100.0,
    }  # fmt: skip
