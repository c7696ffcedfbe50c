"""Keys of an input method (Japanese, Chinese, Korean ...) belong to it: Enter and Esc choose or cancel characters there
and do nothing to the page. Chromium's own composition, by its debugging protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.judging_page import answers, card_id, judging, judging_with_next, settle, wait_for_answers
from tests.cast import Cast
from tests.judging import ONE_QUESTION, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
#: As Safari and older browsers report a key of an input method.
PROCESSED = """(key) => document.activeElement.dispatchEvent(
    new KeyboardEvent('keydown', { key, keyCode: 229, bubbles: true, cancelable: true }))"""


def compose(page: Any, text: str) -> None:
    """Characters that the input method has not committed yet."""
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})


def test_judging(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = judging_with_next(page_for(cast.annotator), campaign)
    before = card_id(page)
    page.keyboard.press("3")
    page.keyboard.press("n")
    compose(page, "にほん")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "note"
    page.keyboard.press("Control+Enter")
    settle(page)
    assert (card_id(page), answers(campaign)) == (before, [])
    page.keyboard.insert_text("日本")  # the characters are committed
    page.keyboard.press("Control+Enter")
    wait_for_answers(page, campaign, 1)
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    settle(page)
    for key in ("4", "Enter", "u", "?"):
        page.evaluate(PROCESSED, key)
    assert page.locator("input:checked, dialog[open], .errorlist").count() == 0
    page.keyboard.press("4")
    assert page.locator("input:checked").count() == 1


def test_dialogs_and_menus(cast: Cast, page_for: Open) -> None:
    page = judging(page_for(cast.annotator), open_rating(cast))
    page.click(".menu > summary")
    page.evaluate(PROCESSED, "Escape")
    assert page.locator("details.menu[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("details.menu[open]").count() == 0
    page.keyboard.press("?")
    page.wait_for_selector("dialog#keys[open]")
    for key in ("Escape", "3", "Enter", "g"):
        page.evaluate(PROCESSED, key)
    assert page.locator("dialog#keys[open]").count() == 1
    assert page.locator("input:checked, dialog#guidelines[open]").count() == 0
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
