from __future__ import annotations

import json

import pytest

from annotation.selectors.campaigns import get_own_campaign
from annotation.selectors.judging import (
    find_previous_assignment,
    list_my_campaigns,
    list_own_assignments,
    order_texts,
    wire_own,
)
from annotation.selectors.judging_sheet import get_sheet, make_sheet
from annotation.services.campaigns import update_campaign
from annotation.services.judging import get_next_assignment
from evalapp.common.errors import NotAllowed, NotThere
from tests.annotation.services.judging_helpers import open_for, send


def test_my_campaigns_needs_two_queries_and_shows_own_figures(cast, django_assert_num_queries):
    first = open_for(cast, max_per_annotator=3)
    open_for(cast, "pairwise")
    for user in (cast.annotator, cast.researcher):
        shown = get_next_assignment(user=user, campaign_id=first.pk).shown
        send(user, first, shown.public, seconds=4)
    with django_assert_num_queries(2):
        found = list_my_campaigns(user=cast.annotator)
        rows = [(row.campaign.slug, row.done, row.goal, row.left, row.mean_seconds) for row in found]
    assert rows == [("test-pairwise", 0, 4, 4, None), ("test-likert", 1, 3, 2, 4.0)]
    assert list_my_campaigns(user=cast.viewer) == []
    assert list_my_campaigns(user=cast.stranger) == []


def test_campaign_permissions(cast):
    campaign = open_for(cast)
    assert get_own_campaign(user=cast.annotator, campaign_id=campaign.pk) == campaign
    with pytest.raises(NotAllowed):
        get_own_campaign(user=cast.viewer, campaign_id=campaign.pk)
    with pytest.raises(NotThere):
        get_own_campaign(user=cast.stranger, campaign_id=campaign.pk)


def test_back_leads_through_own_answers(cast):
    campaign = open_for(cast, overlap=2)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    publics = []
    for _ in range(3):
        publics.append(shown.public)
        shown = send(cast.annotator, campaign, shown.public, then="next").next
    last = find_previous_assignment(user=cast.annotator, campaign=campaign)
    assert last is not None
    assert last.public == publics[2]
    before = find_previous_assignment(user=cast.annotator, campaign=campaign, before=last.order_number)
    assert before is not None
    assert before.public == publics[1]
    assert find_previous_assignment(user=cast.researcher, campaign=campaign) is None


def test_control_is_indistinguishable_in_the_history(cast):
    control = {"item": "i000", "system": "sys-a", "expected": {"likert-quality": 5}, "why": "secret reason"}
    practice = {**control, "item": "i001", "why": "told reason"}
    campaign = open_for(cast, controls=[control], practice=[practice], options={"control_rate": 0.5})
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    while shown is not None:
        shown = send(cast.annotator, campaign, shown.public, then="next").next
    rows = [wire_own(row) for row in list_own_assignments(user=cast.annotator, campaign=campaign)]
    text = json.dumps(rows, default=str)
    assert "secret reason" not in text
    assert text.count("told reason") == 1
    assert len({tuple(sorted(row)) for row in rows}) == 1


def test_texts_appear_as_they_were_shown(cast):
    campaign = open_for(cast, "turing")
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    row = list_own_assignments(user=cast.annotator, campaign=campaign).get()
    assert order_texts(row) == shown.texts


def test_campaign_change_renews_the_cached_sheet(cast):
    campaign = open_for(cast)
    before = get_sheet(campaign.pk, campaign.created_at, campaign.revision)
    changed = update_campaign(campaign=campaign, user=cast.researcher, changes={"max_per_annotator": 2})
    after = get_sheet(changed.pk, changed.created_at, changed.revision)
    assert (before.goal, after.goal) == (8, 2)
    assert make_sheet(changed) == after
