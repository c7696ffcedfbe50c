"""The watch page on PostgreSQL, whose aggregates and types differ from SQLite's: with answers, a skipped text, an
expired lease, comparisons with a side bias; and empty."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.models import Assignment, Campaign
from annotation.services import campaigns, judging_plans
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.judging_acts import flag_assignment, skip_assignment
from evalapp.accounts.models import User
from tests.cast import make_cast
from tests.judging import ONE_QUESTION, make_draft, make_texts, open_comparison, open_rating
from tests.pages import read_page


def test_two_campaigns_opened_at_once_see_each_other(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ask the same about the same outputs. The second starts before the first is committed and must keep its
    raters apart, or each would replace the other's ratings."""
    cast, asked, others = make_cast(), judging_plans._asked_before, list[Future[Campaign]]()
    make_texts(cast, 2)
    first, second = (make_draft(cast, slug=slug, name=slug) for slug in ("one", "two"))

    def work() -> Campaign:
        try:
            return campaigns.open_campaign(campaign=second, user=cast.researcher)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:

        def meanwhile(campaign: Campaign) -> bool:
            found = asked(campaign)
            monkeypatch.setattr(judging_plans, "_asked_before", asked)
            others.append(pool.submit(work))
            wait(others, timeout=0.5)
            return found

        monkeypatch.setattr(judging_plans, "_asked_before", meanwhile)
        assert campaigns.open_campaign(campaign=first, user=cast.researcher).rater_suffix == ""
        assert others[0].result().rater_suffix == f"@{second.pk}"


def read(client: Client, path: str) -> str:
    response = client.get(path)
    text = read_page(response)
    assert response.status_code == 200, text[:3000]
    return text


def answer(user: User, campaign: Campaign, **values: object) -> None:
    shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
    assert shown is not None
    submit_answer(user=user, public=shown.public, submission=uuid4(), answer=values, seconds=12.0)


def test_watching_on_postgres(postgres_db: str) -> None:
    cast = make_cast()
    rita = Client()
    rita.force_login(cast.researcher)
    campaign = open_rating(cast, items=3, aspects=ONE_QUESTION, overlap=2)
    base = f"/projects/alpha/campaigns/{campaign.pk}/"
    assert "0 of 12 judgements" in read(rita, base)
    for user in (cast.annotator, cast.owner):
        for value in (2, 5, 6):
            answer(user, campaign, naturalness=value)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    flag_assignment(user=cast.annotator, public=shown.public, reason="broken", text="half a word")
    skip_assignment(user=cast.annotator, public=shown.public, reason="It is empty.")
    get_next_assignment(user=cast.owner, campaign_id=campaign.pk)
    Assignment.objects.filter(state="open").update(lease_until=timezone.now() - timedelta(minutes=1))
    text = read(rita, base)
    assert "6 of 12 judgements" in text
    assert "p-anna" in text
    assert "12 s" in text
    assert "half a word" in read(rita, f"{base}flags/")
    assert read(rita, f"{base}judgements/").count("<tr>") == 1 + 6
    assert "of 2" in read(rita, f"{base}texts/")
    assert "Replies" in read(rita, "/projects/alpha/campaigns/")


def test_watching_comparisons_and_a_draft_on_postgres(postgres_db: str) -> None:
    cast = make_cast()
    rita = Client()
    rita.force_login(cast.researcher)
    campaign = open_comparison(cast)
    for verdict in ("a", "a", "b"):
        answer(cast.annotator, campaign, quality=verdict)
    assert "2 : 1" in read(rita, f"/projects/alpha/campaigns/{campaign.pk}/")
    draft = make_draft(cast, name="Not yet")
    assert "Not yet" in read(rita, f"/projects/alpha/campaigns/{draft.pk}/")
