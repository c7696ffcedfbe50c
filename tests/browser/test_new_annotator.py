"""First contact of an annotator in a browser: from the invitation link to the tenth answer, the guidelines, the list of
own answers, the actions below long texts, and the display."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import Assignment, Judgement, Output
from evalapp.accounts.models import User
from evalapp.accounts.roles import Role
from evalapp.accounts.services import create_invitation
from tests.browser.judging_page import (
    ANSWERED_BEFORE,
    BEGIN,
    CORRECTION_STORED,
    get_answers,
    get_card_id,
    open_judging_page,
    settle,
    wait_for_answers,
)
from tests.cast import Cast
from tests.judging import ONE_QUESTION, PRACTICE, open_comparison, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
PASSWORD = "a-long-enough-one"


class Keyboard:
    """Uses a page by keyboard only."""

    size = {"width": 1100, "height": 800}

    def __init__(self, page: Any) -> None:
        self.page = page

    def go_to(self, selector: str) -> None:
        """Press Tab until the focus is on the element."""
        for _ in range(60):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    def fill(self, selector: str, text: str) -> None:
        self.go_to(selector)
        self.page.keyboard.type(text)

    def press(self, selector: str) -> None:
        self.go_to(selector)
        self.page.keyboard.press("Enter")

    def answer(self, naturalness: int, relevance: int) -> None:
        for key in (str(naturalness), str(relevance), "Enter"):
            self.page.keyboard.press(key)

    def go_on(self) -> None:
        settle(self.page)
        self.page.keyboard.press("Enter")


class Pointer:
    """Uses a page on a phone."""

    size = {"width": 360, "height": 640}

    def __init__(self, page: Any) -> None:
        self.page = page

    def fill(self, selector: str, text: str) -> None:
        self.page.click(selector)
        self.page.keyboard.type(text)

    def press(self, selector: str) -> None:
        self.page.click(selector)

    def answer(self, naturalness: int, relevance: int) -> None:
        self.page.click(f"label:has([name='answer.naturalness'][value='{naturalness}'])")
        self.page.click(f"label:has([name='answer.relevance'][value='{relevance}'])")
        self.page.click("button[data-submit]")

    def go_on(self) -> None:
        self.page.click("[data-go-on]")


def wait_for_next(page: Any, before: str) -> None:
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    page.wait_for_selector("form.answer")


@pytest.mark.parametrize("device", [Keyboard, Pointer])
def test_from_the_link_to_the_tenth_answer(cast: Cast, page_for: Open, device: Any) -> None:
    campaign = open_rating(cast, practice=PRACTICE)
    landing = f"/my/{campaign.pk}/"
    secret = create_invitation(project=cast.project, role=Role.ANNOTATOR, actor=cast.owner, landing=landing)[1]
    page = page_for(None, **device.size)
    hand = device(page)
    page.goto(f"/invitations/{secret}/")
    hand.fill("[name=username]", "nina")
    hand.fill("[name=password]", PASSWORD)
    hand.press("main button.primary")
    page.wait_for_selector(BEGIN)
    expect(page.locator("main")).to_contain_text("Rate the reply only.", use_inner_text=True)
    assert not Assignment.objects.exists()  # no text is given out to somebody who only reads
    hand.press(BEGIN)
    page.wait_for_selector("article[data-practice] form.answer")
    hand.answer(5, 1)
    page.wait_for_selector("[data-passed=yes]")
    hand.go_on()
    page.wait_for_selector("article:not([data-practice]) form.answer")
    for number in range(10):
        before = get_card_id(page)
        hand.answer(number % 6 + 1, number % 5 + 1)
        wait_for_next(page, before)
    expect(page.locator("#done-count")).to_have_text("10", use_inner_text=True)
    wait_for_answers(page, campaign, 11)
    rows = Judgement.objects.filter(annotator__username="nina", assignment__unit__kind="normal").order_by("pk")
    given = [{"naturalness": number % 6 + 1, "relevance": number % 5 + 1} for number in range(10)]
    assert list(rows.values_list("answer", flat=True)) == given


def test_begin_works_without_script_and_appears_once(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator, script=False)
    page.goto(f"/my/{campaign.pk}/")
    page.click(BEGIN)
    page.wait_for_selector("form.answer")
    page.goto("/my/")
    page.goto(f"/my/{campaign.pk}/")
    expect(page.locator("form.answer")).to_have_count(1)
    page.goto(f"/my/{campaign.pk}/guidelines/")
    expect(page.locator(BEGIN)).to_have_count(0)


def test_guidelines_beside_the_text_scroll_by_keyboard(cast: Cast, page_for: Open) -> None:
    guidelines = "\n\n".join(f"Rule {number}: look at the reply." for number in range(60))
    page = page_for(cast.annotator, width=1500)
    open_judging_page(page, open_comparison(cast, guidelines=guidelines))
    Keyboard(page).go_to("aside.guidelines")
    before = page.evaluate("window.scrollY")
    page.keyboard.press("ArrowDown")  # outside it chooses “equally good”
    page.wait_for_function("() => document.querySelector('aside.guidelines').scrollTop > 0")
    expect(page.locator("#stage input:checked")).to_have_count(0)
    assert page.evaluate("window.scrollY") == before


@pytest.mark.parametrize(("width", "height"), [(360, 640), (640, 360)], ids=["phone", "200 % zoom"])
def test_actions_stay_in_view_below_a_long_text(cast: Cast, page_for: Open, width: int, height: int) -> None:
    campaign = open_rating(cast)
    Output.objects.update(text="A long reply with many words. " * 150)
    page = open_judging_page(page_for(cast.annotator, width=width, height=height), campaign)
    measure = """() => {
      const bar = document.querySelector("form.answer .bar").getBoundingClientRect();
      const focus = document.activeElement.closest("label, button, a, summary")?.getBoundingClientRect();
      return { top: bar.top, bottom: bar.bottom, focus: focus ? focus.bottom : null };
    }"""
    at_first = page.evaluate(measure)
    assert 0 < at_first["top"] < at_first["bottom"] <= height
    assert at_first["bottom"] - at_first["top"] < height / 3
    page.click("button[data-submit]")  # the first question without an answer is shown above the bar
    page.wait_for_selector("form.answer .errorlist")
    page.wait_for_timeout(200)
    at_question = page.evaluate(measure)
    assert 0 < at_question["focus"] <= at_question["top"]
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_own_answers_lead_to_their_corrections(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page(page_for(cast.annotator), campaign)
    for key in "234":
        before = get_card_id(page)
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        wait_for_next(page, before)
    wait_for_answers(page, campaign, 3)
    page.keyboard.press("l")
    page.wait_for_selector("[data-answer]")
    numbers = page.locator("[data-answer]").evaluate_all("rows => rows.map((row) => row.dataset.answer)")
    assert numbers == ["3", "2", "1"]
    expect(page.locator("[data-answer] b")).to_have_text(["4", "3", "2"], use_inner_text=True)
    Keyboard(page).press("[data-answer='1'] a")
    page.wait_for_selector(ANSWERED_BEFORE)
    page.keyboard.press("6")
    page.keyboard.press("Enter")
    page.wait_for_selector(CORRECTION_STORED)
    assert sorted(row["naturalness"] for row in get_answers(campaign)) == [3, 4, 6]


def test_without_a_clock_the_time_is_still_measured(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION, options={"show_clock": False})
    page = open_judging_page(page_for(cast.annotator), campaign)
    page.wait_for_timeout(1100)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    wait_for_answers(page, campaign, 1)
    expect(page.locator("#elapsed, .pace")).to_have_count(0)
    assert (Judgement.objects.get().seconds or 0) >= 1


LOOK = """() => {
  const style = getComputedStyle(document.documentElement);
  return { size: parseFloat(style.fontSize), paper: getComputedStyle(document.body).backgroundColor,
           ink: getComputedStyle(document.body).color };
}"""
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 23, 28)"


def test_display_is_chosen_in_place_and_kept(cast: Cast, page_for: Open) -> None:
    """On the judging page by keyboard; then on another device, and in this browser after signing out."""
    campaign = open_rating(cast)
    page = open_judging_page(page_for(cast.annotator), campaign)
    card = get_card_id(page)
    hand = Keyboard(page)
    settle(page)
    hand.press(".menu > summary")
    hand.press(".menu [data-dialog=display]")
    page.wait_for_selector("dialog#display[open]")
    for name, value in (("theme", "dark"), ("text", "larger"), ("contrast", "more")):
        with page.expect_response(lambda response: response.url.endswith("/account/display/")):
            page.check(f"#display [name={name}][value={value}]")
    assert page.evaluate(LOOK) == {"size": 22, "paper": DARK, "ink": "rgb(255, 255, 255)"}
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.matches('.menu > summary')")
    assert get_card_id(page) == card
    user = User.objects.get(pk=cast.annotator.pk)
    assert (user.theme, user.preferences) == ("dark", {"text": "larger", "contrast": "more", "language": "browser"})
    other = page_for(cast.annotator, script=False)  # the server writes it into the page, so nothing flashes
    other.goto("/my/")
    assert other.evaluate(LOOK)["paper"] == DARK
    page.context.clear_cookies(name="sessionid")
    page.goto("/account/sign-in/")
    assert page.evaluate(LOOK)["size"] == 22


def test_display_without_account_and_script(page_for: Open) -> None:
    page = page_for(None, script=False, scheme="dark")
    page.goto("/account/sign-in/")
    assert page.evaluate(LOOK)["paper"] == DARK
    page.click(".site-foot [href$='/display/']")
    page.check("[name=theme][value=light]")
    page.check("[name=text][value=large]")
    page.click("main button.primary")
    page.goto("/account/sign-in/")
    assert page.evaluate(LOOK)["paper"] == LIGHT
    assert page.evaluate(LOOK)["size"] == 19


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_more_contrast_follows_the_system_until_chosen(
    cast: Cast, page_for: Open, axe: Callable[..., list[str]], scheme: str
) -> None:
    page = open_judging_page(page_for(cast.annotator, scheme=scheme), open_rating(cast))
    usual = page.evaluate(LOOK)["ink"]
    page.emulate_media(contrast="more")
    strong = page.evaluate(LOOK)["ink"]
    assert strong == ("rgb(0, 0, 0)" if scheme == "light" else "rgb(255, 255, 255)")
    assert axe(page) == []
    User.objects.filter(pk=cast.annotator.pk).update(preferences={"contrast": "normal"})
    page.reload()
    assert page.evaluate(LOOK)["ink"] == usual
