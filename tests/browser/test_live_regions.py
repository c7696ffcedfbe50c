"""What changes without a new page is in a live region of Chromium's accessibility tree, so that it is read out."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.judging_page import SAVED, get_card_id, offline_status, open_judging_page_with_next
from tests.browser.tree import list_live_texts
from tests.cast import Cast
from tests.judging import open_rating

pytestmark = pytest.mark.browser


def test_a_saved_draft_and_a_lost_connection_are_read_out(cast: Cast, page_for: Callable[..., Any]) -> None:
    page = open_judging_page_with_next(page_for(cast.annotator), open_rating(cast, items=3))
    page.keyboard.press("4")
    page.wait_for_selector(SAVED)
    assert page.inner_text("#saved") in list_live_texts(page)
    before = get_card_id(page)
    page.context.set_offline(True)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    page.wait_for_selector(offline_status(1))
    assert page.inner_text("#saved") in list_live_texts(page)


def test_a_message_about_a_stored_form_is_read_out(cast: Cast, page_for: Callable[..., Any]) -> None:
    page = page_for(cast.owner)
    page.goto(f"/projects/{cast.project.slug}/settings/")
    assert "" in list_live_texts(page), "the region exists before its message"
    page.locator("main form").first.locator("button.primary").click()
    page.wait_for_selector("#messages [data-level=success]")
    assert page.inner_text("#messages [data-level=success]") in list_live_texts(page)
