"""The final count after a crowd finds every possible violation. tests/faults/test_crowd.py uses the crowd itself."""

from __future__ import annotations

import uuid

import pytest

from annotation.models import Assignment, Judgement, Rating, Slot
from annotation.services.judging import next_assignment, submit_answer
from evalapp.accounts.models import User
from tests.services.annotators import found_in_database, make_house, spread

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged():
    """(campaign, confirmed): two people have judged two texts each."""
    campaign = make_house(3, ["one", "two"], "password-of-nobody", overlap=2)
    confirmed = {}
    for user in User.objects.filter(username__in=["one", "two"]).order_by("pk"):
        for _ in range(2):
            shown = next_assignment(user=user, campaign_id=campaign).shown
            number, answer = uuid.uuid4(), {"quality": 3}
            submit_answer(user=user, public=shown.public, submission=number, answer=answer)
            confirmed[number.hex] = (shown.public, answer)
    return campaign, confirmed


def wrong(judged) -> dict[str, int]:
    return {name: count for name, count in found_in_database(*judged).items() if count and name != "stored"}


def test_no_violation_without_any_work(judged):
    assert found_in_database(*judged)["stored"] == 4
    assert wrong(judged) == {}


def test_lost_and_changed_answers_are_found(judged):
    campaign, confirmed = judged
    assert wrong((campaign, {**confirmed, uuid.uuid4().hex: ("x", {"quality": 1})})) == {"lost": 1}
    number, (public, _) = next(iter(confirmed.items()))
    assert wrong((campaign, {**confirmed, number: (public, {"quality": 1})})) == {"changed": 1}


def test_forbidden_database_states_are_found(judged):
    Rating.objects.filter(judgement=Judgement.objects.first().pk).delete()
    assert wrong(judged) == {"without_rating": 1}
    Judgement.objects.filter(pk=Judgement.objects.last().pk).update(extra=True)
    assert wrong(judged)["extra"] == 1
    Slot.objects.filter(pk=Assignment.objects.exclude(slot=None).first().slot_id).update(state="free")
    assert wrong(judged)["slots_wrong"] == 1
    before = Judgement.objects.order_by("pk").first()
    before.pk, before.version, before.submission = None, 2, uuid.uuid4()
    before.save()
    assert wrong(judged)["doubled"] == 1


def test_spread_is_in_milliseconds():
    assert spread([]) == {"n": 0}
    assert spread([k / 1000 for k in range(1, 101)]) == {
        "n": 100, "p50_ms": 51.0, "p95_ms": 96.0, "p99_ms": 100.0, "max_ms": 100.0,
    }  # fmt: skip
