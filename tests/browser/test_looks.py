"""The appearance of annotators' pages beyond the rules of axe: contrast of key caps, and a stable layout on phones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import Item
from tests.browser.judging_page import NOT_AS_EXPECTED, SAVED, open_judging_page, wait_for_answers
from tests.cast import Cast
from tests.judging import ONE_QUESTION, PRACTICE, open_comparison, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
#: Returns the WCAG 2.2 contrast of each visible key cap from computed colours: its text colour, with its opacity and
#: that of its ancestors, on the nearest opaque background.
MEASURE_CONTRASTS = """() => {
  const rgb = (text) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrasts = [];
  for (const cap of document.querySelectorAll("kbd")) {
    if (!cap.checkVisibility({ visibilityProperty: true })) continue;
    let opacity = 1;
    let behind = null;
    for (let element = cap; element; element = element.parentElement) {
      const style = getComputedStyle(element);
      opacity *= Number(style.opacity);
      const colour = rgb(style.backgroundColor);
      if (!behind && colour[3] === 255) behind = colour;
    }
    behind = behind || rgb("Canvas");
    const ink = rgb(getComputedStyle(cap).color).map((value, index) => opacity * value + (1 - opacity) * behind[index]);
    const [light, dark] = [luminance(ink), luminance(behind)].sort((a, b) => b - a);
    contrasts.push([cap.textContent + " in " + cap.parentElement.textContent.trim(), (light + 0.05) / (dark + 0.05)]);
  }
  return contrasts;
}"""


def check_key_caps(page: Any, least: int) -> None:
    page.wait_for_timeout(400)  # until colour transitions end
    contrasts = page.evaluate(MEASURE_CONTRASTS)
    assert len(contrasts) >= least
    assert [row for row in contrasts if row[1] < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_key_caps_have_sufficient_contrast(cast: Cast, page_for: Open, scheme: str) -> None:
    """Also those in the chosen answer of a comparison."""
    practice = [{"item": "i000", "system": "sys-alpha", "expected": {"naturalness": [5, 6]}}]
    rating = open_rating(cast, practice=practice, aspects=ONE_QUESTION)
    page = page_for(cast.annotator, scheme=scheme)
    open_judging_page(page, rating)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_selector(NOT_AS_EXPECTED)
    check_key_caps(page, 2)
    comparison = open_second_campaign(cast)
    open_judging_page(page, comparison)
    for key in ("a", "x"):
        page.keyboard.press(key)
        check_key_caps(page, 11)  # 7 of the answers, 3 of the actions, and the one that opens the list of keys
    page.keyboard.press("?")
    check_key_caps(page, 11 + 10)


def open_second_campaign(cast: Cast) -> Any:
    from annotation.services.campaigns import open_campaign
    from tests.judging import make_draft

    plan = {"kind": "pairwise", "slug": "pairs", "aspects": [{"name": "quality", "question": "Which one is better?"}]}
    return open_campaign(campaign=make_draft(cast, **plan), user=cast.researcher)


POSITIONS = """() => [...document.querySelectorAll('article, article .text, fieldset label, .bar')]
    .map((element) => Math.round(element.getBoundingClientRect().top + window.scrollY))"""


@pytest.mark.parametrize("width", [360, 390, 430])
def test_layout_is_stable_on_a_phone(cast: Cast, page_for: Open, width: int) -> None:
    """After the first tap, when “Saved” appears, and from text to text."""
    campaign = open_comparison(cast)
    page = open_judging_page(page_for(cast.annotator, width=width), campaign)
    before = page.evaluate(POSITIONS)
    page.click("label:has-text('The first')")
    page.wait_for_selector(SAVED)
    assert page.evaluate(POSITIONS) == before
    first = page.get_attribute("article", "data-id")
    page.click("button[data-submit]")
    wait_for_answers(page, campaign, 1)
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=first)
    page.wait_for_selector(SAVED)
    assert page.evaluate(POSITIONS) == before
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_account_and_sign_out_can_be_reached_on_a_phone(cast: Cast, page_for: Open) -> None:
    page = open_judging_page(page_for(cast.annotator, width=390), open_rating(cast, practice=PRACTICE))
    page.click(".judging-head .menu > summary")
    expect(page.locator("text=Account")).to_be_visible()
    page.click("text=Sign out")
    page.wait_for_selector("text=Sign in")


def test_nothing_moves_for_people_who_want_less_motion(cast: Cast, page_for: Open) -> None:
    page = open_judging_page(page_for(cast.annotator), open_rating(cast))
    slowest = """() => Math.max(...[...document.querySelectorAll('*')].flatMap((element) => {
      const style = getComputedStyle(element);
      return [...style.transitionDuration.split(','), ...style.animationDuration.split(',')].map(parseFloat);
    }))"""
    assert page.evaluate(slowest) > 0.05, "otherwise this test shows nothing"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(slowest) <= 0.0001


def test_the_name_of_an_item_stays_in_view(cast: Cast, page_for: Open) -> None:
    item = Item.objects.create(project=cast.project, key="long", context=["A turn."] * 200, group="long")
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/items/{item.pk}/")
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    assert page.evaluate("window.scrollY") > 1000
    top = page.evaluate("document.querySelector('h1').getBoundingClientRect().top")
    assert 0 <= top < 100


def test_the_estimate_of_a_plan_stays_in_view(cast: Cast, page_for: Open) -> None:
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/campaigns/new/")
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight / 2)")
    side = page.locator(".plan-side").bounding_box()
    assert side["height"] > 50
    assert 0 <= side["y"] < side["y"] + side["height"] <= page.viewport_size["height"]


def test_check_boxes_are_aligned_like_radio_buttons(cast: Cast, page_for: Open) -> None:
    """Both have the same distance to the top of their first line of text."""
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/campaigns/new/")
    drops = page.evaluate("""() => ["radio", "checkbox"].map((kind) => {
      for (const part of document.querySelectorAll("details")) part.open = true;
      const shown = [...document.querySelectorAll(`main input[type=${kind}]`)].filter((one) => one.checkVisibility());
      const box = shown.find((one) => one.labels.length);
      const range = document.createRange();
      range.selectNodeContents(box.labels[0]);
      const line = [...range.getClientRects()].find((part) => part.width > 40);
      return box.getBoundingClientRect().top - line.top;
    })""")
    assert abs(drops[0] - drops[1]) <= 1, drops
