"""The researcher's pages of campaigns in a real browser: planned with the keyboard, watched while somebody judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from annotation.models import Campaign
from annotation.services.campaigns import close_campaign
from annotation.services.judging import next_assignment, submit_answer
from annotation.services.judging_acts import flag_assignment
from tests.cast import Cast
from tests.judging import ONE_QUESTION, PRACTICE, make_draft, make_texts, open_comparison, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
BASE = "/projects/alpha/campaigns/"


def answer(user: Any, campaign: Campaign, **values: Any) -> None:
    shown = next_assignment(user=user, campaign_id=campaign.pk).shown
    assert shown is not None
    submit_answer(user=user, public=shown.public, submission=uuid4(), answer=values, seconds=9.0)


def test_plans_opens_and_invites(cast: Cast, page_for: Open) -> None:
    make_texts(cast)
    page = page_for(cast.researcher)
    page.goto(BASE)
    page.click("text=New campaign")
    page.fill("[name=name]", "Which reply is better?")
    # What a comparison does not need is not there.
    page.check("[name=kind][value=pairwise]")
    assert not page.is_visible("[name='aspects-0-low']")
    assert page.is_visible("[name=pairs]")
    page.fill("[name='aspects-0-name']", "quality")
    page.fill("[name='aspects-0-question']", "Which one fits?")
    page.fill("[name=guidelines]", "Read **both**.")
    page.click("text=Preview")
    page.wait_for_selector("#guidelines-preview strong")
    page.click("button.primary")
    page.wait_for_selector("text=Before you open the campaign")
    page.click("text=Open campaign")
    page.wait_for_selector("text=Now invite annotators")
    page.click("nav[aria-label=Campaign] >> text=Invitations")
    page.get_by_role("button", name="Create link").click()
    link = page.input_value("#secret-invitation")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as without TLS
    page.click("button[data-copy]")
    page.wait_for_selector("button:has-text('Copied')")
    campaign = Campaign.objects.get()
    other = page_for(cast.stranger)
    other.goto(link)
    other.click("main button.primary")
    other.wait_for_url(f"**/my/{campaign.pk}/")
    assert "Which one fits?" in other.inner_text("article")


def test_watch_page_follows_by_itself_and_stops(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.researcher)
    page.goto(f"{BASE}{campaign.pk}/")
    assert "No judgements yet" in page.inner_text("#live")
    answer(cast.annotator, campaign, naturalness=4)
    page.wait_for_selector("text=1 of 12 judgements")
    close_campaign(campaign=campaign, user=cast.researcher)
    page.wait_for_function("() => !document.querySelector('#live').hasAttribute('hx-get')")


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (360, "dark")])
def test_no_fault_of_access_on_any_page(
    cast: Cast, page_for: Open, axe: Callable[..., list[str]], width: int, scheme: str
) -> None:
    campaign = open_comparison(cast)
    answer(cast.annotator, campaign, quality="a")
    shown = next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    flag_assignment(user=cast.annotator, public=shown.public, reason="broken", text="half a word")
    draft = make_draft(cast, name="A draft", practice=PRACTICE)
    page = page_for(cast.researcher, width=width, scheme=scheme)
    tails = ["", "judgements/", "texts/", "flags/", "people/", "preview/", "close/", "plan/"]
    paths = ["", "new/", *(f"{campaign.pk}/{tail}" for tail in tails)]
    paths += [f"{draft.pk}/{tail}" for tail in ("", "plan/", "checks/", "checks/?item=i001", "delete/")]
    found = {}
    for path in paths:
        page.goto(BASE + path)
        faults = axe(page)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            faults.append("wider than the window")
        if faults:
            found[path] = faults
    assert found == {}
