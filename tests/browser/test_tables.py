"""Tables of results by keyboard, and without script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import Item
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
NAMES = "tbody th[scope=row]"


@pytest.fixture
def rated(cast: Cast) -> Cast:
    items = make_items(cast.project, 6)
    make_ratings(cast.project, make_outputs(cast.project, items, ("sys-2", "sys-10", "sys-1")))
    return cast


def press_until(page: Any, key: str, selector: str) -> None:
    """Move the focus with a key to an element."""
    for _ in range(80):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{selector} is not reached by {key}")


def test_a_table_is_sorted_by_keyboard(rated: Cast, page_for: Open) -> None:
    page = page_for(rated.researcher)
    page.goto("/projects/alpha/systems/")
    press_until(page, "Tab", "#sort-system")
    page.keyboard.press("Enter")
    page.wait_for_selector("th[data-column=system][aria-sort=ascending]")
    expect(page.locator(NAMES)).to_have_text(["sys-1", "sys-2", "sys-10"], use_inner_text=True)
    assert "sort=system" in page.url
    # The focus stays, so the same key reverses the order.
    assert page.evaluate("document.activeElement.id") == "sort-system"
    page.keyboard.press("Enter")
    page.wait_for_selector("th[data-column=system][aria-sort=descending]")
    expect(page.locator(NAMES)).to_have_text(["sys-10", "sys-2", "sys-1"], use_inner_text=True)
    page.go_back()
    page.wait_for_selector("th[data-column=system][aria-sort=ascending]")


def test_columns_are_chosen_by_keyboard(rated: Cast, page_for: Open) -> None:
    page = page_for(rated.researcher)
    page.goto("/projects/alpha/systems/?sort=system")
    press_until(page, "Tab", "[data-columns] > summary")
    page.keyboard.press("Enter")
    press_until(page, "Tab", "[data-columns] input[value=kind]")
    page.keyboard.press("Space")
    press_until(page, "Tab", "[data-columns] button")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("th[data-column=kind]")).to_have_count(0)
    expect(page.locator("th[data-column=value]")).to_have_count(1)
    expect(page.locator("th[data-column=system][aria-sort=ascending]")).to_have_count(1)
    # The form above keeps order and columns.
    page.locator("#query button").last.click()
    page.wait_for_load_state()
    expect(page.locator("th[data-column=kind]")).to_have_count(0)
    expect(page.locator("th[data-column=system][aria-sort=ascending]")).to_have_count(1)


def test_order_columns_and_intervals_need_no_script(rated: Cast, page_for: Open) -> None:
    page = page_for(rated.researcher, script=False)
    page.goto("/projects/alpha/systems/")
    page.click("#sort-system")
    expect(page.locator("th[data-column=system][aria-sort=ascending]")).to_have_count(1)
    page.click("[data-columns] > summary")
    page.uncheck("[data-columns] input[value=kind]")
    page.click("[data-columns] button")
    expect(page.locator("th[data-column=kind]")).to_have_count(0)
    page.click("#intervals")
    expect(page.locator("th[data-column=low]")).to_have_count(1)
    expect(page.locator(NAMES)).to_have_text(["sys-1", "sys-2", "sys-10"], use_inner_text=True)


@pytest.mark.parametrize("width", [390, 1280])
def test_headings_and_names_stay_while_a_table_scrolls(rated: Cast, page_for: Open, width: int) -> None:
    names = [f"a system with a long name {number}" for number in range(60)]
    items = list(Item.objects.filter(project=rated.project)[:2])
    make_ratings(rated.project, make_outputs(rated.project, items, names))
    page = page_for(rated.researcher, width=width)
    page.goto("/projects/alpha/systems/?intervals=1")
    wrap = page.locator(".table-wrap.tall").first
    wrap.scroll_into_view_if_needed()
    top = wrap.evaluate("wrap => { wrap.scrollTop = 600; wrap.scrollLeft = 300; return wrap.scrollTop; }")
    assert top == 600
    box, name = wrap.bounding_box(), page.locator(NAMES).nth(30).bounding_box()
    head = page.locator("th[data-column=system]").bounding_box()
    assert abs(head["y"] - box["y"]) <= 2
    assert box["x"] - 2 <= name["x"] <= box["x"] + 16 or width > 600
    # Nothing shows through.
    for place in (page.locator("th[data-column=system]"), page.locator(NAMES).nth(30)):
        colour = place.evaluate("element => getComputedStyle(element).backgroundColor")
        assert not colour.endswith(", 0)")
