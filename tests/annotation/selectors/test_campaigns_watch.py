from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import Assignment, CampaignMember
from annotation.selectors.campaigns import list_flags
from annotation.selectors.campaigns_quality import compute_quality
from annotation.selectors.campaigns_watch import (
    get_pseudonyms,
    list_latest_judgements,
    list_unit_progress,
    watch_campaign,
)
from annotation.services.judging import get_next_assignment
from annotation.services.judging_acts import flag_assignment
from annotation.services.judging_handout import return_expired_slots
from evalapp.accounts.models import Membership, User
from evalapp.accounts.services import remove_member
from tests.annotation.services.judging_helpers import open_for, send


def judge(user, campaign, values):
    """Answers by item key."""
    turn = get_next_assignment(user=user, campaign_id=campaign.pk)
    shown = turn.shown
    while shown is not None:
        key = Assignment.objects.select_related("unit__item").get(public=shown.public).unit.item.key
        shown = send(user, campaign, shown.public, values(key), seconds=10, then="next").next


def test_counts_before_and_after(cast):
    campaign = open_for(cast, overlap=2)
    empty = watch_campaign(campaign)
    assert (empty.done, empty.units_by_answers, empty.share, empty.median_seconds) == (0, {0: 8}, 0.0, None)
    assert empty.agreement[0]["alpha"] is None
    judge(cast.annotator, campaign, lambda key: 3)
    half = watch_campaign(campaign)
    assert (half.done, half.units_by_answers, half.units_complete, half.share) == (8, {1: 8}, 0, 0.5)
    judge(cast.researcher, campaign, lambda key: 4)
    full = watch_campaign(campaign)
    assert (full.done, full.units_by_answers, full.units_complete) == (16, {2: 8}, 8)
    assert [(row.pseudonym, row.done, row.median_seconds) for row in full.annotators] == [
        ("p-anna", 8, 10.0), ("p-rita", 8, 10.0),
    ]  # fmt: skip
    for user in (cast.annotator, cast.researcher):
        remove_member(member=Membership.objects.get(project=cast.project, user=user), actor=cast.owner)
    User.objects.filter(pk=cast.researcher.pk).update(username="closed-1")
    assert sorted(get_pseudonyms(campaign).values()) == ["former member 2", "p-anna"]  # two raters as before


def test_late_joiner_renames_nobody(cast):
    """Rita's account is older than Anna's."""
    campaign = open_for(cast, items=1, overlap=2)
    judge(cast.annotator, campaign, lambda key: 3)
    remove_member(member=Membership.objects.get(project=cast.project, user=cast.annotator), actor=cast.owner)
    User.objects.filter(pk=cast.annotator.pk).update(username="closed-1")
    assert get_pseudonyms(campaign) == {cast.annotator.pk: "former member 1"}
    judge(cast.researcher, campaign, lambda key: 4)
    CampaignMember.objects.filter(annotator=cast.researcher).update(done=9)
    names = {cast.annotator.pk: "former member 1", cast.researcher.pk: "p-rita"}
    assert get_pseudonyms(campaign) == names
    assert {row.user_id: row.pseudonym for row in watch_campaign(campaign).annotators} == names


def test_agreement_is_krippendorffs_alpha(cast):
    campaign = open_for(cast, overlap=2, systems=("sys-a",))
    judge(cast.annotator, campaign, lambda key: 1 + int(key[1:]))
    judge(cast.researcher, campaign, lambda key: 1 + int(key[1:]))
    found = watch_campaign(campaign).agreement[0]
    assert (found["alpha"], found["n"], found["scale"]) == (1.0, 4, "interval")


def test_agreement_is_equal_on_both_pages_and_excludes_late_answers(cast):
    campaign = open_for(cast, items=6, overlap=2)
    late = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    Assignment.objects.update(lease_until=timezone.now() - timedelta(minutes=1))
    return_expired_slots()
    judge(cast.researcher, campaign, lambda key: 1 + int(key[1:]) % 5)
    judge(cast.owner, campaign, lambda key: 5 if key == "i002" else 1 + int(key[1:]) % 5)
    assert send(cast.annotator, campaign, late.public, 5).extra
    found, quality = watch_campaign(campaign).agreement[0], compute_quality(campaign)
    assert quality["n"] == 24
    last = quality["aspects"][0]["growth"][-1]
    assert [found[name] for name in ("alpha", "low", "high", "n")] == [
        *(round(last[name], 4) for name in ("value", "low", "high")), last["n"],
    ]  # fmt: skip


def test_agreement_of_comparisons_ignores_the_side(cast):
    """With overlap 2, each pair is shown on both sides; preferring the same output is agreement."""
    campaign = open_for(cast, "pairwise", overlap=2)
    for user in (cast.annotator, cast.researcher):
        turn = get_next_assignment(user=user, campaign_id=campaign.pk)
        shown = turn.shown
        while shown is not None:
            wanted = "sys-a" if shown.unit_id % 2 else "sys-b"
            side = "a" if shown.texts[0].startswith(wanted) else "b"
            shown = send(user, campaign, shown.public, side, then="next").next
    watched = watch_campaign(campaign)
    assert watched.agreement[0]["alpha"] == 1.0
    assert sum(row.left + row.right for row in watched.annotators) == 8


def test_open_lapsed_and_extra(cast):
    campaign = open_for(cast, items=1, systems=("sys-a",))
    mine = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    Assignment.objects.update(lease_until=timezone.now() - timedelta(minutes=1))
    watched = watch_campaign(campaign)
    assert (watched.open, watched.lapsed) == (1, 1)
    return_expired_slots()
    get_next_assignment(user=cast.researcher, campaign_id=campaign.pk)
    send(cast.annotator, campaign, mine.public)
    watched = watch_campaign(campaign)
    assert (watched.open, watched.lapsed, watched.extra, watched.done) == (1, 0, 1, 0)


def test_failed_controls_by_annotator(cast):
    checks = [{"item": f"i00{k}", "system": "sys-b", "expected": {"likert-quality": 5}} for k in range(3)]
    campaign = open_for(cast, items=8, controls=checks, options={"control_rate": 0.25})
    judge(cast.annotator, campaign, lambda key: 5 if key == "i000" else 1)
    row = watch_campaign(campaign).annotators[0]
    assert (row.controls, row.controls_failed) == (3, 2)


def test_lists_for_researchers(cast, django_assert_max_num_queries):
    campaign = open_for(cast, overlap=2)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    flag_assignment(user=cast.annotator, public=shown.public, reason="unclear")
    send(cast.annotator, campaign, shown.public)
    with django_assert_max_num_queries(3):
        units = list(list_unit_progress(campaign).order_by("pk"))
        judgement = list_latest_judgements(campaign).get()
        flag = list_flags(campaign, resolved=False).get()
    assert sum(unit.answers for unit in units) == 1
    assert judgement.assignment.unit.output_a.system.name in {"sys-a", "sys-b"}
    assert flag.assignment.unit == judgement.assignment.unit
    assert not list_flags(campaign, resolved=True).exists()


@pytest.mark.parametrize("count", [3, 12])
def test_watching_needs_the_same_queries_at_any_size(cast, count, django_assert_max_num_queries):
    campaign = open_for(cast, items=count, overlap=2)
    judge(cast.annotator, campaign, lambda key: 3)
    with django_assert_max_num_queries(12):
        watch_campaign(campaign)
