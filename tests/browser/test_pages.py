"""All pages in a browser, with data, with unusual texts and in an empty project: no script errors, no violations of the
security policy, no violations found by axe in light, in dark and at 360 px, no horizontal scrolling at 360 px and at
200 % zoom, names and landmarks in the accessibility tree, no shift of the layout while loading. A page is loaded once
and then checked in the other appearances, because loading takes most of the time and no script depends on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from evalapp.accounts.models import Membership, Project
from evalapp.accounts.roles import Role
from tests.browser.conftest import COLOURS, WIDTHS
from tests.browser.tree import find_tree_problems
from tests.browser.world import (
    ROUTES_WITHOUT_PAGE,
    get_navigation_urls,
    get_page_routes,
    make_unusual_texts,
    make_world,
)
from tests.cast import Cast

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]

DESKTOP, PHONE = {"width": 1100, "height": 800}, {"width": 360, "height": 740}
#: The desktop at 200 % zoom: half as many pixels of the style sheet.
ZOOMED = {"width": 550, "height": 400}
#: Above this, people see a page jump while it loads.
LAYOUT_SHIFT = 0.05
MEASURE_SHIFT = """() => new Promise((resolve) => {
  let sum = 0;
  const add = (list) => list.getEntries().forEach((entry) => { if (!entry.hadRecentInput) sum += entry.value; });
  new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => setTimeout(() => resolve(sum), 0));
})"""
MEASURE_PAGE = """() => {
  const root = document.documentElement;
  const isVisible = (heading) => heading.closest("main, header");
  return {
    width: window.innerWidth,
    overflow: root.scrollWidth - root.clientWidth,
    headings: [...document.querySelectorAll("h1")].filter(isVisible).length,
  };
}"""
FINISH_TRANSITIONS = "document.getAnimations().forEach((item) => item instanceof CSSTransition && item.finish())"


class PageChecker:
    """Opens pages, with one browser window for each user, and collects their problems. `all_appearances`: checks each
    page also in dark colours and at the width of a phone; `options` are those of `page_for`."""

    def __init__(
        self, page_for: Open, axe: Callable[..., list[str]], *, all_appearances: bool = False, **options: Any
    ) -> None:
        self.page_for, self.axe, self.all_appearances, self.options = page_for, axe, all_appearances, options
        self.windows: dict[str, Any] = {}
        self.console_errors: list[str] = []
        self.location, self.ignores_console = "", False
        self.problems: list[str] = []
        self.largest_shift = 0.0

    def get_window(self, user: Any) -> Any:
        name = user.username if user else ""
        if name not in self.windows:
            page = self.windows[name] = self.page_for(user, **self.options)
            page.on("console", lambda line: self.console_errors.append(line.text) if line.type == "error" else None)
        return self.windows[name]

    def open(self, user: Any, path: str, statuses: tuple[int, ...] = (200,)) -> None:
        self.report_console_errors()
        page = self.get_window(user)
        self.location = f"{path} ({user.username if user else 'anonymous'})"
        response = page.goto(path)
        self.ignores_console = response.status != 200  # the browser logs such a status as an error
        if response.status not in statuses:
            self.report(str(response.status))
            return
        self.check_layout(page)
        self.report(*self.axe(page))
        self.report(*find_tree_problems(page, is_document=path.startswith("/reports/")))
        shift = page.evaluate(MEASURE_SHIFT)
        self.largest_shift = max(self.largest_shift, shift)
        if shift > LAYOUT_SHIFT:
            self.report(f"the layout shifts by {shift:.3f} while loading")
        if self.all_appearances:
            page.emulate_media(color_scheme="dark")
            page.evaluate(FINISH_TRANSITIONS)
            self.report(*(f"in dark: {line}" for line in self.axe(page, COLOURS)))
            page.set_viewport_size(ZOOMED)
            self.check_layout(page)
            page.set_viewport_size(PHONE)
            self.check_layout(page)
            self.report(*(f"at 360 px: {line}" for line in self.axe(page, WIDTHS)))
            page.set_viewport_size(DESKTOP)
            page.emulate_media(color_scheme="light")

    def check_layout(self, page: Any) -> None:
        measured = page.evaluate(MEASURE_PAGE)
        if measured["overflow"] > 0:
            self.report(f"{measured['overflow']} px too wide for {measured['width']} px")
        if measured["headings"] != 1:
            self.report(f"{measured['headings']} headings of the first level instead of one")

    def report(self, *lines: str) -> None:
        self.problems += [f"{self.location}: {line}" for line in lines]

    def report_console_errors(self) -> None:
        """Report the errors logged until the page is left, including those of images that load late."""
        if not self.ignores_console:
            self.report(*self.console_errors)
        self.console_errors.clear()

    def assert_no_problems(self) -> None:
        self.report_console_errors()
        assert not self.problems, "\n".join(self.problems)


@pytest.mark.promise("policy", "scripts")
def test_pages(
    cast: Cast, page_for: Open, axe: Callable[..., list[str]], record_property: Callable[[str, object], None]
) -> None:
    """In light and dark, on a desktop and a phone. A new route must be in the world or in `ROUTES_WITHOUT_PAGE`."""
    world = make_world(cast)
    routes = set(world.pages)
    assert get_page_routes() - routes - ROUTES_WITHOUT_PAGE == set()
    assert ROUTES_WITHOUT_PAGE & routes == set()
    checker = PageChecker(page_for, axe, all_appearances=True)
    for pages in world.pages.values():
        for user, path in pages:
            checker.open(user, path, (200, 404) if "not-a-secret" in path else (200,))
    checker.assert_no_problems()
    record_property("figure", f"{sum(map(len, world.pages.values()))} pages in Chromium, 0 violations of the policy")
    record_property("layout shift", f"{checker.largest_shift:.3f} at most")


@pytest.mark.promise("policy", "scripts")
def test_pages_with_unusual_texts(cast: Cast, page_for: Open, axe: Callable[..., list[str]]) -> None:
    """Right-to-left text, markup, very long words and empty texts are shown unchanged, and the page keeps its width."""
    paths = make_unusual_texts(cast)
    checker = PageChecker(page_for, axe, **PHONE)
    for path in paths:
        checker.open(cast.stranger, path)
        page = checker.get_window(cast.stranger)
        expect(page.locator("main script")).to_have_count(0)
    checker.assert_no_problems()
    page.goto(next(path for path in paths if "/items/" in path and path.rstrip("/")[-1].isdigit()))
    turn = page.locator("main .turns [dir=auto]:not(.speaker)").first
    assert turn.evaluate("element => getComputedStyle(element).direction") == "rtl"


def test_pages_of_an_empty_project(cast: Cast, page_for: Open, axe: Callable[..., list[str]]) -> None:
    """Every page offers a next step."""
    empty = Project.objects.create(slug="empty", name="Empty")
    Membership.objects.create(project=empty, user=cast.researcher, role=Role.RESEARCHER, pseudonym="p-rita")
    checker = PageChecker(page_for, axe)
    for path in get_navigation_urls("empty")[:-1]:
        checker.open(cast.researcher, path)
        page = checker.get_window(cast.researcher)
        expect(page.locator("main a, main form, main code").first, path).to_be_attached()
    checker.assert_no_problems()


def test_keyboard_reaches_everything(cast: Cast, page_for: Open) -> None:
    """The Tab key reaches the skip link, the main action of a page and the account menu."""
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/campaigns/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    assert page.evaluate("document.activeElement.innerText.trim()") == "New writing campaign"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Upload"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline not in {"none", ""}
    page.keyboard.press("Enter")
    page.wait_for_url("**/uploads/")
    page.keyboard.press("Shift+?")
    assert page.locator("dialog#keys").evaluate("element => element.open")
    page.keyboard.press("Escape")
    assert not page.locator("dialog#keys").evaluate("element => element.open")
    page.locator(".site-head summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.menu') !== null")
