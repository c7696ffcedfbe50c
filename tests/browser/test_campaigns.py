"""The campaign pages of a researcher in a browser: plan, open, invite, and follow the progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from annotation.models import Campaign
from annotation.services.campaigns import close_campaign
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.judging_acts import flag_assignment
from tests.browser.judging_page import BEGIN
from tests.cast import Cast
from tests.judging import ONE_QUESTION, PRACTICE, make_draft, make_texts, open_comparison, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
BASE = "/projects/alpha/campaigns/"


def submit_judgement(user: Any, campaign: Campaign, **answer: Any) -> None:
    shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
    assert shown is not None
    submit_answer(user=user, public=shown.public, submission=uuid4(), answer=answer, seconds=9.0)


def test_plan_open_and_invite(cast: Cast, page_for: Open) -> None:
    make_texts(cast)
    page = page_for(cast.researcher)
    page.goto(BASE)
    page.click("text=New campaign")
    page.fill("[name=name]", "Which reply is better?")
    # Fields that a comparison does not need are hidden.
    page.check("[name=kind][value=pairwise]")
    expect(page.locator("[name='aspects-0-low']")).not_to_be_visible()
    expect(page.locator("[name=pairs]")).to_be_visible()
    page.fill("[name='aspects-0-name']", "quality")
    page.fill("[name='aspects-0-question']", "Which one fits?")
    # The estimate beside the form follows what is typed: 6 pairs of texts by 3 people.
    page.fill("[name=overlap]", "3")
    page.wait_for_selector("#estimate[data-estimate='18']")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.locator("#estimate").bounding_box()["y"] >= 0, "it stays in view"
    page.fill("[name=guidelines]", "Read **both**.")
    page.click("text=Preview")
    page.wait_for_selector("#guidelines-preview strong")
    page.click("button.primary")
    page.click("form[action$='/open/'] button")
    page.wait_for_selector(".status[data-state=open]")
    link = page.input_value("#secret-invitation")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as without TLS
    page.click("button[data-copy]")
    page.wait_for_selector("button:has-text('Copied')")
    campaign = Campaign.objects.get()
    other = page_for(cast.stranger)
    other.goto(link)
    other.click("main button.primary")
    other.click(BEGIN)
    other.wait_for_url(f"**/my/{campaign.pk}/")
    expect(other.locator("article")).to_contain_text("Which one fits?", use_inner_text=True)


def test_campaign_page_updates_itself_until_closed(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.researcher)
    page.goto(f"{BASE}{campaign.pk}/")
    expect(page.locator("#live")).to_contain_text("No judgements yet", use_inner_text=True)
    submit_judgement(cast.annotator, campaign, naturalness=4)
    page.wait_for_selector("text=1 of 12 judgements")
    close_campaign(campaign=campaign, user=cast.researcher)
    page.wait_for_function("() => !document.querySelector('#live').hasAttribute('hx-get')")


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (360, "dark")])
def test_pages_are_accessible(
    cast: Cast, page_for: Open, axe: Callable[..., list[str]], width: int, scheme: str
) -> None:
    campaign = open_comparison(cast)
    submit_judgement(cast.annotator, campaign, quality="a")
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    flag_assignment(user=cast.annotator, public=shown.public, reason="broken", text="half a word")
    draft = make_draft(cast, name="A draft", practice=PRACTICE)
    page = page_for(cast.researcher, width=width, scheme=scheme)
    names = ["", "judgements/", "texts/", "flags/", "people/", "preview/", "close/", "plan/"]
    paths = ["", "new/", *(f"{campaign.pk}/{name}" for name in names)]
    paths += [f"{draft.pk}/{name}" for name in ("", "plan/", "checks/", "checks/?item=i001", "delete/")]
    violations = {}
    for path in paths:
        page.goto(BASE + path)
        lines = axe(page)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            lines.append("wider than the window")
        if lines:
            violations[path] = lines
    assert violations == {}
