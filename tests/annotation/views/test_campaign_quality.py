"""The quality page of a campaign: sentences, plots, people with reasons; empty before the first judgement."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.urls import reverse

from annotation.selectors.campaigns_quality import compute_quality
from annotation.services.judging import get_next_assignment, submit_answer
from tests.annotation.services.judging_helpers import open_for
from tests.judging import make_draft
from tests.pages import fetch_figures, read_page

pytestmark = pytest.mark.django_db


def judge(user, campaign, verdict):
    shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
    while shown is not None:
        answer = {f"{campaign.kind}-quality": verdict(shown)}
        sent = submit_answer(
            user=user, public=shown.public, submission=uuid4(), answer=answer, seconds=8.0, then="next"
        )
        shown = sent.next


def show(client, user, campaign, **query):
    client.force_login(user)
    return client.get(reverse("annotation:campaign-quality", args=["alpha", campaign.pk]), query)


def test_ratings(cast, client):
    campaign = open_for(cast, items=16, overlap=2)
    assert "No judgements yet" in read_page(show(client, cast.researcher, campaign))
    judge(cast.annotator, campaign, lambda shown: 1 + shown.unit_id % 5)
    judge(cast.owner, campaign, lambda shown: 1 + shown.unit_id % 5)
    text = read_page(show(client, cast.researcher, campaign))
    assert "Agreement over time" in text
    assert "data-cost>" in text
    assert [file[:5] for file in fetch_figures(client, text)] == [b"<svg ", b"%PDF-"] * 2
    assert "p-anna" in text
    found = compute_quality(campaign)
    assert found["n"] == 64
    assert found["aspects"][0]["growth"][-1]["value"] == pytest.approx(1.0)
    assert found["cost"]["seconds"] == pytest.approx(64 * 8.0)
    assert found["cost"]["left"] == 0


def test_comparisons_with_adaptive_choice(cast, client):
    options = {"adaptive": True, "adaptive_goal": "best"}
    systems = ("sys-a", "sys-b", "sys-c")
    campaign = open_for(cast, "pairwise", items=12, systems=systems, pairs=30, options=options)
    judge(cast.annotator, campaign, lambda shown: "a")
    text = read_page(show(client, cast.researcher, campaign))
    adaptive = text.partition('<section id="adaptive" data-goal="best">')[2]
    assert re.search(r"\b30 [^<]*\b30\b", adaptive.partition("</p>")[0])
    # A rater who always takes the first side has no finite odds; the page reports the count.
    assert re.search(r"data-side>[^<]*\b30\b", text)
    assert "data-power>" in text


def test_permissions_and_drafts(cast, client):
    campaign = open_for(cast)
    assert show(client, cast.annotator, campaign).status_code == 403
    assert show(client, cast.stranger, campaign).status_code == 404
    draft = make_draft(cast, slug="draft", name="Draft", aspects=[{"name": "a", "low": 1, "high": 3}])
    assert show(client, cast.researcher, draft).status_code == 302


def test_judgement_updates_the_figures(cast):
    campaign = open_for(cast, items=4)
    assert compute_quality(campaign)["n"] == 0
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    submit_answer(user=cast.annotator, public=shown.public, submission=uuid4(), answer={"likert-quality": 3})
    assert compute_quality(campaign)["n"] == 1
