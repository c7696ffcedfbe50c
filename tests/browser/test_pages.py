"""Every page in a real browser: no error of scripts or of the security policy, nothing that axe finds wrong, no
sideways scrolling at 360 px, in light and dark; with data, with strange texts and with nothing. A page is loaded once
and then shown in the other looks: loading is what takes the time, and no script asks how wide or dark a window is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evalapp.accounts.models import Membership, Project
from evalapp.accounts.roles import Role
from tests.browser.world import NO_PAGE, make_strange, make_world, page_routes, project_places
from tests.cast import Cast

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]

WINDOW, TELEPHONE = {"width": 1100, "height": 800}, {"width": 360, "height": 740}
LOOK = """() => {
  const root = document.documentElement;
  const shown = (heading) => heading.closest("main, header");
  return {
    width: window.innerWidth,
    wider: root.scrollWidth - root.clientWidth,
    headings: [...document.querySelectorAll("h1")].filter(shown).length,
  };
}"""
# Colours that are still on their way are at their end.
ARRIVE = "document.getAnimations().forEach((one) => one instanceof CSSTransition && one.finish())"


class Walk:
    """One browser window for each person; collects what is wrong on the pages it opens."""

    def __init__(self, page_for: Open, axe: Callable[..., list[str]], *, looks: bool = False, **look: Any) -> None:
        self.page_for, self.axe, self.looks, self.look = page_for, axe, looks, look
        self.windows: dict[str, Any] = {}
        self.said: list[str] = []
        self.where, self.silent = "", False
        self.wrong: list[str] = []

    def window(self, who: Any) -> Any:
        name = who.username if who else ""
        if name not in self.windows:
            page = self.windows[name] = self.page_for(who, **self.look)
            page.on("console", lambda line: self.said.append(line.text) if line.type == "error" else None)
        return self.windows[name]

    def open(self, who: Any, path: str, statuses: tuple[int, ...] = (200,)) -> None:
        self.finish()
        page = self.window(who)
        self.where = f"{path} ({who.username if who else 'nobody'})"
        answer = page.goto(path)
        self.silent = answer.status != 200  # the browser says that as an error, too
        if answer.status not in statuses:
            self.blame(str(answer.status))
            return
        self.check(page)
        self.blame(*self.axe(page))
        if self.looks:
            page.emulate_media(color_scheme="dark")
            page.evaluate(ARRIVE)
            self.blame(*(f"in dark: {line}" for line in self.axe(page, colours=True)))
            page.set_viewport_size(TELEPHONE)
            self.check(page)
            page.set_viewport_size(WINDOW)
            page.emulate_media(color_scheme="light")

    def check(self, page: Any) -> None:
        """What holds at every width."""
        look = page.evaluate(LOOK)
        if look["wider"] > 0:
            self.blame(f"{look['wider']} px too wide for {look['width']} px")
        if look["headings"] != 1:
            self.blame("not one heading of the first level")

    def blame(self, *lines: str) -> None:
        self.wrong += [f"{self.where}: {line}" for line in lines]

    def finish(self) -> None:
        """What the page said until it was left, belated pictures included."""
        if not self.silent:
            self.blame(*self.said)
        self.said.clear()

    def assert_nothing_wrong(self) -> None:
        self.finish()
        assert not self.wrong, "\n".join(self.wrong)


@pytest.mark.promise("policy", "scripts")
def test_pages(
    cast: Cast, page_for: Open, axe: Callable[..., list[str]], record_property: Callable[[str, object], None]
) -> None:
    """In light and in dark, on a wide window and on a telephone. A new page is in the walk, or said to be none."""
    world = make_world(cast)
    walked = set(world.pages)
    assert page_routes() - walked - NO_PAGE == set()
    assert NO_PAGE & walked == set()
    walk = Walk(page_for, axe, looks=True)
    for pages in world.pages.values():
        for who, path in pages:
            walk.open(who, path, (200, 404) if "not-a-secret" in path else (200,))
    walk.assert_nothing_wrong()
    record_property("figure", f"{sum(map(len, world.pages.values()))} pages in Chromium, 0 violations of the policy")


@pytest.mark.promise("policy", "scripts")
def test_pages_with_strange_texts(cast: Cast, page_for: Open, axe: Callable[..., list[str]]) -> None:
    """Right-to-left, markup, endless words, nothing at all: shown as they are, and the page keeps its width."""
    paths = make_strange(cast)
    walk = Walk(page_for, axe, **TELEPHONE)
    for path in paths:
        walk.open(cast.stranger, path)
        page = walk.window(cast.stranger)
        assert page.locator("main script").count() == 0
    walk.assert_nothing_wrong()
    page.goto(next(path for path in paths if "/items/" in path and path.rstrip("/")[-1].isdigit()))
    assert page.evaluate("getComputedStyle(document.querySelector('main .turns li')).direction") == "rtl"


def test_pages_of_an_empty_project(cast: Cast, page_for: Open, axe: Callable[..., list[str]]) -> None:
    """A project with nothing in it says on every page what to do next."""
    empty = Project.objects.create(slug="empty", name="Empty")
    Membership.objects.create(project=empty, user=cast.researcher, role=Role.RESEARCHER, pseudonym="p-rita")
    walk = Walk(page_for, axe)
    for path in project_places("empty")[:-1]:
        walk.open(cast.researcher, path)
        page = walk.window(cast.researcher)
        assert page.locator("main a, main form, main code").count() > 0, path
    walk.assert_nothing_wrong()


def test_keyboard_reaches_everything(cast: Cast, page_for: Open) -> None:
    """With the Tab key alone: the way past the navigation, the account's menu, and the main action of a page."""
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/campaigns/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    assert page.evaluate("document.activeElement.innerText.trim()") == "New writing campaign"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "New campaign"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline not in {"none", ""}
    page.keyboard.press("Enter")
    page.wait_for_url("**/campaigns/new/")
    page.keyboard.press("Shift+?")
    assert page.locator("dialog#keys").evaluate("element => element.open")
    page.keyboard.press("Escape")
    assert not page.locator("dialog#keys").evaluate("element => element.open")
    page.locator(".site-head summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.menu') !== null")
