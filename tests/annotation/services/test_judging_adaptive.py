"""Adaptive choice of pairs: overlap and number of units stay as planned, each judgement records the probability of its
pair, and informative pairs are chosen more often."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
from django.db import connection

from annotation.models import Assignment, Campaign, Comparison, Slot, Unit
from annotation.services import judging_adaptive
from annotation.services.campaigns import update_campaign
from annotation.services.judging import get_next_assignment
from evalapp.accounts.roles import Role
from evalapp.common.errors import BadInput
from tests.annotation.services.judging_helpers import open_for, send
from tests.cast import join, make_cast, person

SYSTEMS = ("sys-a", "sys-b", "sys-c", "sys-d")


def open_adaptive(cast: Any, *, pairs: int | None = 12, overlap: int = 2, items: int = 10, **options: Any) -> Campaign:
    options = {"adaptive": True, **options}
    return open_for(cast, "pairwise", items=items, systems=SYSTEMS, pairs=pairs, overlap=overlap, options=options)


def judge(user: Any, campaign: Campaign, verdict: Any = None) -> int:
    """Answers everything available; returns the number of answers."""
    shown, count = get_next_assignment(user=user, campaign_id=campaign.pk).shown, 0
    while shown is not None:
        count += 1
        shown = send(user, campaign, shown.public, verdict(shown) if verdict else None, then="next").next
    return count


def test_exactly_the_planned_units_with_their_overlap(cast):
    campaign = open_adaptive(cast)
    assert (campaign.unit_count, Slot.objects.filter(state="pool").count()) == (12, 60 * 2)
    assert judge(cast.annotator, campaign) == 12
    assert judge(cast.owner, campaign) == 12
    assert get_next_assignment(user=cast.researcher, campaign_id=campaign.pk).why == "empty"
    per_unit = Counter(Assignment.objects.values_list("unit_id", flat=True))
    assert set(per_unit.values()) == {2}
    campaign.refresh_from_db()
    assert campaign.begun_count == 12
    assert Slot.objects.filter(state="free").count() == 0


def test_every_judgement_records_the_probability_of_its_pair(cast):
    campaign = open_adaptive(cast)
    for user in (cast.annotator, cast.owner):
        judge(user, campaign)
    chances = dict(Unit.objects.filter(propensity__isnull=False).values_list("pk", "propensity"))
    assert len(chances) == 12
    # A floor of .2 over the 6 pairs of four systems.
    assert all(0.2 / 6 <= chance <= 1 for chance in chances.values())
    assert len(set(chances.values())) > 1
    for row in Assignment.objects.all():
        assert row.propensity == chances[row.unit_id]
    kept = Counter(round(row.meta["propensity"], 12) for row in Comparison.objects.all())
    assert kept == Counter(round(chances[unit], 12) for unit in chances for _ in range(2))


def test_temporarily_locked_pair_is_not_given_up(cast, monkeypatch):
    """Simulates another transaction that locks the last units of a pair and then rolls back."""
    claim, held = judging_adaptive._claim, []

    def held_once(cursor: Any, campaign_id: int, pair: int, propensity: float) -> Any:
        if not held:
            held.append(pair)
            return None
        return claim(cursor, campaign_id, pair, propensity)

    monkeypatch.setattr(judging_adaptive, "_claim", held_once)
    campaign = open_adaptive(cast, pairs=60, overlap=1)
    assert judge(cast.annotator, campaign) == 60
    assert held


def test_informative_pairs_are_chosen_more_often(cast):
    """sys-d always loses, the others tie: pairs with sys-d soon give no information."""
    campaign = open_adaptive(cast, pairs=40, overlap=1, items=30, adaptive_floor=0.05)
    names = dict(Unit.objects.values_list("pk", "output_a__system__name"))
    others = dict(Unit.objects.values_list("pk", "output_b__system__name"))

    def verdict(shown: Any) -> str:
        pair = {names[shown.unit_id], others[shown.unit_id]}
        if "sys-d" not in pair:
            return "tie"
        first_is_d = (names[shown.unit_id] == "sys-d") is not shown.swapped
        return "b" if first_is_d else "a"

    assert judge(cast.annotator, campaign, verdict) == 40
    begun = Unit.objects.filter(propensity__isnull=False).values_list("pk", flat=True)
    with_d = sum("sys-d" in {names[unit], others[unit]} for unit in begun)
    assert with_d < 14  # half of the pairs involve sys-d: 20 at random


def test_when_off_the_choice_is_random_and_recorded(cast):
    campaign = open_adaptive(cast, pairs=6, overlap=1)
    options = {**campaign.options, "adaptive": False}
    update_campaign(campaign=campaign, user=cast.researcher, changes={"options": options})
    judge(cast.annotator, campaign)
    chances = Unit.objects.filter(propensity__isnull=False).values_list("propensity", flat=True)
    assert list(chances) == pytest.approx([1 / 6] * 6)


def test_cannot_be_enabled_later_or_for_ratings(cast):
    plain = open_for(cast, "pairwise", systems=SYSTEMS)
    with pytest.raises(BadInput, match="before the campaign is opened"):
        update_campaign(campaign=plain, user=cast.researcher, changes={"options": {"adaptive": True}})
    with pytest.raises(BadInput, match="Only a comparison"):
        open_for(cast, "likert", options={"adaptive": True}, slug="likert-2")
    with pytest.raises(BadInput, match=r"number from 0\.05 to 1"):
        open_adaptive(cast, adaptive_floor=0)


def test_plain_campaign_records_no_probability(cast):
    campaign = open_for(cast, "pairwise", systems=SYSTEMS[:2])
    judge(cast.annotator, campaign)
    assert set(Assignment.objects.values_list("propensity", flat=True)) == {None}
    assert all(set(row.meta) <= {"swapped"} for row in Comparison.objects.all())


def test_fast_annotator_starts_further_units_and_all_are_finished(cast, monkeypatch):
    monkeypatch.setattr(judging_adaptive, "LOOKED_AT", 2)
    campaign = open_adaptive(cast, pairs=10, overlap=3)
    for user in (cast.annotator, cast.owner, cast.researcher):
        assert judge(user, campaign) == 10
    assert set(Counter(Assignment.objects.values_list("unit_id", flat=True)).values()) == {3}


def test_expired_lease_passes_the_unit_on(cast):
    campaign = open_adaptive(cast, pairs=1, overlap=1)
    held = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert get_next_assignment(user=cast.owner, campaign_id=campaign.pk).shown is None
    Assignment.objects.update(lease_until="2020-01-01T00:00:00+00:00")
    assert get_next_assignment(user=cast.owner, campaign_id=campaign.pk).shown.unit_id == held.unit_id
    campaign.refresh_from_db()
    assert campaign.begun_count == 1


def test_revised_answer_counts_once_also_in_a_new_process(cast):
    campaign = open_adaptive(cast, pairs=3, overlap=1)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    send(cast.annotator, campaign, shown.public, "a", then="next")
    send(cast.annotator, campaign, shown.public, "tie", replaces=1)
    judge(cast.annotator, campaign)
    known = _points(campaign)
    judging_adaptive.forget(campaign.pk)
    assert _points(campaign) == known
    assert known == pytest.approx(3.0)


def _points(campaign: Campaign) -> float:
    from annotation.selectors.judging_sheet import make_sheet

    state = judging_adaptive.get_state(make_sheet(campaign))
    with connection.cursor() as cursor, state.lock:
        state._read_on(cursor)
    return float(state.pairs.points.sum())


def test_many_at_once_on_postgres(postgres_db: str) -> None:
    """Six people, eight units, overlap two: no unit exceeds its overlap, none is left half done, no person waits
    forever."""
    cast = make_cast()
    campaign = open_adaptive(cast, pairs=8, overlap=2)
    people = [person(f"judge{k}") for k in range(6)]
    for user in people:
        join(cast.project, user, Role.ANNOTATOR)
    errors: list[BaseException] = []

    def work(user: Any) -> None:
        try:
            judge(user, campaign)
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not errors, errors
    per_unit = Counter(Assignment.objects.filter(state="submitted").values_list("unit_id", flat=True))
    assert len(per_unit) == 8
    assert set(per_unit.values()) == {2}
    campaign.refresh_from_db()
    assert campaign.begun_count == 8
    assert Comparison.objects.filter(meta__propensity__gt=0).count() == 16
