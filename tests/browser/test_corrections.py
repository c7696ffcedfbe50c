"""Corrections by keyboard: stored once and confirmed; then the page returns to the text shown before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import Campaign, Judgement
from tests.browser.judging_page import (
    ANSWERED_BEFORE,
    CORRECTION_STORED,
    LAST_ANSWER,
    NO_CONNECTION,
    NOT_AS_EXPECTED,
    NOTHING_LEFT,
    UNANSWERED,
    get_answers,
    get_card_id,
    open_judging_page,
    settle,
    wait_for_answers,
)
from tests.cast import Cast
from tests.judging import ONE_QUESTION, PRACTICE, SYSTEMS, open_comparison, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
#: Kind -> function that opens the campaign, key of the first answer, key of the correction.
KINDS: dict[str, tuple[Callable[[Cast], Campaign], str, str]] = {
    "rating": (lambda cast: open_rating(cast, aspects=ONE_QUESTION), "2", "5"),
    "pairwise": (open_comparison, "a", "d"),
    "Turing": (lambda cast: open_comparison(cast, kind="turing", systems=[SYSTEMS[0]]), "a", "="),
    "answer on key": (lambda cast: open_comparison(cast, options={"answer_on_key": True}), "a", "d"),
}


def get_versions(campaign: Campaign) -> list[int]:
    rows = Judgement.objects.filter(campaign=campaign).order_by("assignment__order_number", "version")
    return list(rows.values_list("version", flat=True))


def answer_first(page: Any, campaign: Campaign, key: str, on_key: bool = False) -> str:
    """Answer the first text; return the id of the second, which is then displayed."""
    open_judging_page(page, campaign)
    first = get_card_id(page)
    page.keyboard.press(key)
    if not on_key:
        page.keyboard.press("Enter")
    wait_for_answers(page, campaign, 1)
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=first)
    settle(page)
    return get_card_id(page)


@pytest.mark.parametrize("kind", KINDS)
def test_correction_is_stored_once_and_shows_the_next_text(cast: Cast, page_for: Open, kind: str) -> None:
    open_kind, key, other = KINDS[kind]
    campaign, on_key = open_kind(cast), kind == "answer on key"
    page = page_for(cast.annotator)
    second = answer_first(page, campaign, key, on_key)
    page.keyboard.press("u")
    page.wait_for_selector(ANSWERED_BEFORE)
    page.keyboard.press(other)
    if not on_key:
        page.keyboard.press("Enter")
    page.wait_for_selector(CORRECTION_STORED)
    assert get_card_id(page) == second
    assert page.url.endswith(f"/my/{campaign.pk}/")
    page.keyboard.press("Enter")  # a second Enter immediately, and a third one later
    settle(page)
    page.keyboard.press("Enter")
    expect(page.locator(UNANSWERED)).to_have_count(1)
    assert get_versions(campaign) == [1, 2]
    # The next answer removes the message.
    page.keyboard.press(key)
    if not on_key:
        page.keyboard.press("Enter")
    wait_for_answers(page, campaign, 2)
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=second)
    expect(page.locator("#messages")).to_have_text("", use_inner_text=True)
    assert get_versions(campaign) == [1, 2, 1]


@pytest.mark.parametrize("script", [True, False])
def test_unchanged_answer_stores_no_correction(cast: Cast, page_for: Open, script: bool) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    second = answer_first(page_for(cast.annotator), campaign, "2")
    page = page_for(cast.annotator, script=script)
    first = Judgement.objects.get().assignment.public
    page.goto(f"/my/{campaign.pk}/{first}/")
    page.click("text=Submit correction")
    page.wait_for_selector("#messages [data-level=info]")
    assert get_card_id(page) == second
    assert get_versions(campaign) == [1]


def test_correcting_the_last_answer_shows_all_done(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, items=1, aspects=ONE_QUESTION, systems=[SYSTEMS[0]])
    page = open_judging_page(page_for(cast.annotator), campaign)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.click(LAST_ANSWER)
    page.wait_for_selector(ANSWERED_BEFORE)
    page.keyboard.press("6")
    page.keyboard.press("Enter")
    page.wait_for_selector(NOTHING_LEFT)
    expect(page.locator(CORRECTION_STORED)).to_have_count(1)
    assert (get_answers(campaign), get_versions(campaign)) == ([{"naturalness": 6}], [1, 2])


def test_unconfirmed_correction_is_resent_with_the_same_id(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    second = answer_first(page, campaign, "2")
    page.keyboard.press("u")
    page.wait_for_selector(ANSWERED_BEFORE)

    def lose(route: Any) -> None:
        route.fetch()  # stored, but the response never arrives
        route.abort()

    page.route("**/submit/", lose)
    page.keyboard.press("5")
    page.keyboard.press("Enter")
    page.wait_for_selector(NO_CONNECTION)
    page.unroute("**/submit/")
    page.keyboard.press("Enter")
    page.wait_for_selector(CORRECTION_STORED)
    assert get_card_id(page) == second
    assert get_versions(campaign) == [1, 2]


def test_practice_answer_shows_the_expected_answer_and_is_stored_once(cast: Cast, page_for: Open) -> None:
    practice = [{**PRACTICE[0], "expected": {"naturalness": [5, 6]}}]
    campaign = open_rating(cast, practice=practice, aspects=ONE_QUESTION)
    page = open_judging_page(page_for(cast.annotator), campaign)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.wait_for_selector(NOT_AS_EXPECTED)
    settle(page)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.wait_for_selector("form.answer")
    assert get_versions(campaign) == [1]


def test_early_enter_does_not_submit_a_restored_draft(cast: Cast, page_for: Open) -> None:
    """An Enter just after a text appears was meant for the previous text, even if a draft already answers this one."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page(page_for(cast.annotator), campaign)
    page.keyboard.press("4")
    page.wait_for_selector("#saved >> text=/Saved \\d/")
    page.clock.install()
    page.clock.pause_at("2030-01-01T12:00:00Z")
    page.reload()
    expect(page.locator("[name='answer.naturalness'][value='4']")).to_be_checked()
    page.keyboard.press("Enter")
    page.clock.fast_forward(700)
    assert get_versions(campaign) == []
    page.keyboard.press("Enter")
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 4}]
