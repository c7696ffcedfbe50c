"""While an input method (Japanese, Chinese, Korean ...) is composing, Enter and Esc choose or cancel characters and
must not act on the page. Composition uses Chromium's debugging protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.judging_page import (
    get_answers,
    get_card_id,
    open_judging_page,
    open_judging_page_with_next,
    settle,
    wait_for_answers,
)
from tests.cast import Cast
from tests.judging import ONE_QUESTION, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
#: A key of an input method as reported by Safari and older browsers.
PRESS_COMPOSING_KEY = """(key) => document.activeElement.dispatchEvent(
    new KeyboardEvent('keydown', { key, keyCode: 229, bubbles: true, cancelable: true }))"""


def compose(page: Any, text: str) -> None:
    """Enter characters that the input method has not committed yet."""
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})


def test_judging(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page_with_next(page_for(cast.annotator), campaign)
    before = get_card_id(page)
    page.keyboard.press("3")
    page.keyboard.press("n")
    compose(page, "にほん")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "note"
    page.keyboard.press("Control+Enter")
    settle(page)
    assert (get_card_id(page), get_answers(campaign)) == (before, [])
    page.keyboard.insert_text("日本")  # the characters are committed
    page.keyboard.press("Control+Enter")
    wait_for_answers(page, campaign, 1)
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    settle(page)
    for key in ("4", "Enter", "u", "?"):
        page.evaluate(PRESS_COMPOSING_KEY, key)
    expect(page.locator("#stage input:checked, dialog[open], .errorlist")).to_have_count(0)
    page.keyboard.press("4")
    expect(page.locator("#stage input:checked")).to_have_count(1)


def test_dialogs_and_menus(cast: Cast, page_for: Open) -> None:
    page = open_judging_page(page_for(cast.annotator), open_rating(cast))
    page.click(".menu > summary")
    page.evaluate(PRESS_COMPOSING_KEY, "Escape")
    expect(page.locator("details.menu[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("details.menu[open]")).to_have_count(0)
    page.keyboard.press("?")
    page.wait_for_selector("dialog#keys[open]")
    for key in ("Escape", "3", "Enter", "g"):
        page.evaluate(PRESS_COMPOSING_KEY, key)
    expect(page.locator("dialog#keys[open]")).to_have_count(1)
    expect(page.locator("#stage input:checked, dialog#guidelines[open]")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
