"""An answer that is corrected by keyboard: stored once, said, and the annotator goes on where they were before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from annotation.models import Campaign, Judgement
from tests.browser.judging_page import (
    ANSWERED_BEFORE,
    CORRECTION_STORED,
    LAST_ANSWER,
    NO_CONNECTION,
    NOT_AS_EXPECTED,
    answers,
    card_id,
    judging,
    settle,
    wait_for_answers,
)
from tests.cast import Cast
from tests.judging import ONE_QUESTION, PRACTICE, SYSTEMS, open_comparison, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
#: Kind -> how to open it, the first key and another one.
KINDS: dict[str, tuple[Callable[[Cast], Campaign], str, str]] = {
    "rating": (lambda cast: open_rating(cast, aspects=ONE_QUESTION), "2", "5"),
    "pairwise": (open_comparison, "a", "d"),
    "Turing": (lambda cast: open_comparison(cast, kind="turing", systems=[SYSTEMS[0]]), "a", "="),
    "answer on key": (lambda cast: open_comparison(cast, options={"answer_on_key": True}), "a", "d"),
}


def versions(campaign: Campaign) -> list[int]:
    rows = Judgement.objects.filter(campaign=campaign).order_by("assignment__order_number", "version")
    return list(rows.values_list("version", flat=True))


def answer_first(page: Any, campaign: Campaign, key: str, on_key: bool = False) -> str:
    """Answers the first text; returns the id of the one after it, where the annotator is then."""
    judging(page, campaign)
    first = card_id(page)
    page.keyboard.press(key)
    if not on_key:
        page.keyboard.press("Enter")
    wait_for_answers(page, campaign, 1)
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=first)
    settle(page)
    return card_id(page)


@pytest.mark.parametrize("kind", KINDS)
def test_a_correction_is_stored_once_and_leads_on(cast: Cast, page_for: Open, kind: str) -> None:
    begin, key, other = KINDS[kind]
    campaign, on_key = begin(cast), kind == "answer on key"
    page = page_for(cast.annotator)
    second = answer_first(page, campaign, key, on_key)
    page.keyboard.press("u")
    page.wait_for_selector(ANSWERED_BEFORE)
    page.keyboard.press(other)
    if not on_key:
        page.keyboard.press("Enter")
    page.wait_for_selector(CORRECTION_STORED)
    assert card_id(page) == second
    assert page.url.endswith(f"/my/{campaign.pk}/")
    page.keyboard.press("Enter")  # a second one at once, and one that has waited
    settle(page)
    page.keyboard.press("Enter")
    assert "Choose an answer first" in page.inner_text("form.answer")
    assert versions(campaign) == [1, 2]
    # The message is gone with the next answer.
    page.keyboard.press(key)
    if not on_key:
        page.keyboard.press("Enter")
    wait_for_answers(page, campaign, 2)
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=second)
    assert page.inner_text("#messages") == ""
    assert versions(campaign) == [1, 2, 1]


@pytest.mark.parametrize("script", [True, False])
def test_an_unchanged_answer_is_no_correction(cast: Cast, page_for: Open, script: bool) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    second = answer_first(page_for(cast.annotator), campaign, "2")
    page = page_for(cast.annotator, script=script)
    first = Judgement.objects.get().assignment.public
    page.goto(f"/my/{campaign.pk}/{first}/")
    page.click("text=Submit correction")
    page.wait_for_selector("#messages >> text=Nothing was changed.")
    assert card_id(page) == second
    assert versions(campaign) == [1]


def test_the_last_answer_corrected_ends_at_all_done(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, items=1, aspects=ONE_QUESTION, systems=[SYSTEMS[0]])
    page = judging(page_for(cast.annotator), campaign)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.click(LAST_ANSWER)
    page.wait_for_selector(ANSWERED_BEFORE)
    page.keyboard.press("6")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=All done")
    assert "The correction is saved." in page.inner_text("#messages")
    assert (answers(campaign), versions(campaign)) == ([{"naturalness": 6}], [1, 2])


def test_a_correction_without_word_from_the_server_is_sent_again_as_the_same(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    second = answer_first(page, campaign, "2")
    page.keyboard.press("u")
    page.wait_for_selector(ANSWERED_BEFORE)

    def lose(route: Any) -> None:
        route.fetch()  # stored, but the answer never arrives
        route.abort()

    page.route("**/submit/", lose)
    page.keyboard.press("5")
    page.keyboard.press("Enter")
    page.wait_for_selector(NO_CONNECTION)
    page.unroute("**/submit/")
    page.keyboard.press("Enter")
    page.wait_for_selector(CORRECTION_STORED)
    assert card_id(page) == second
    assert versions(campaign) == [1, 2]


def test_a_practice_answer_shows_what_was_expected_and_is_stored_once(cast: Cast, page_for: Open) -> None:
    practice = [{**PRACTICE[0], "expected": {"naturalness": [5, 6]}}]
    campaign = open_rating(cast, practice=practice, aspects=ONE_QUESTION)
    page = judging(page_for(cast.annotator), campaign)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.wait_for_selector(NOT_AS_EXPECTED)
    settle(page)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.wait_for_selector("form.answer")
    assert versions(campaign) == [1]


def test_a_restored_draft_is_not_submitted_by_the_enter_before(cast: Cast, page_for: Open) -> None:
    """An Enter within a moment of a text's appearance was meant for the one before, also where a draft answers it."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = judging(page_for(cast.annotator), campaign)
    page.keyboard.press("4")
    page.wait_for_selector("#saved >> text=/Saved \\d/")
    page.clock.install()
    page.clock.pause_at("2030-01-01T12:00:00Z")
    page.reload()
    assert page.is_checked("[name='answer.naturalness'][value='4']")
    page.keyboard.press("Enter")
    page.clock.fast_forward(700)
    assert versions(campaign) == []
    page.keyboard.press("Enter")
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 4}]
