"""Menus, tables and error codes in narrow windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import Output
from evalapp.common.runner import execute_run
from scoring.services.scores import apply_evaluator
from tests.browser.judging_page import open_judging_page
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings
from tests.judging import open_comparison

pytestmark = pytest.mark.browser
Open = Callable[..., Any]


@pytest.mark.parametrize("width", [390, 820, 1100, 1280])
@pytest.mark.parametrize("address", ["systems/steps/", "evaluation/", "references/enhanced/"])
def test_filter_menu_fits_the_window_and_closes(cast: Cast, page_for: Open, width: int, address: str) -> None:
    items = make_items(cast.project, 2)
    outputs = make_outputs(cast.project, items, ("net",))
    make_ratings(cast.project, outputs)
    for output in outputs:
        Output.objects.filter(pk=output.pk).update(step=10)
    for name in ("length", "random"):
        run = apply_evaluator(project=cast.project, evaluator=name, send=False)
        assert execute_run(run.pk).state == "succeeded"
    page = page_for(cast.researcher, width=width)
    page.goto(f"/projects/alpha/{address}")
    summary = page.locator(".inline-form summary:has-text('Evaluators')")
    summary.click()
    (menu, *boxes) = page.locator(".inline-form .menu[open] > div, .inline-form .menu[open] label").evaluate_all(
        "all => all.map((element) => element.getBoundingClientRect().toJSON())"
    )
    checkbox = page.locator(".inline-form .menu[open] input").first
    assert checkbox.evaluate("element => element.offsetWidth") < 24
    assert len(boxes) == 2
    for box in (menu, *boxes):
        assert box["left"] >= 0
        assert box["right"] <= width
    page.keyboard.press("Escape")
    expect(page.locator("details.menu[open]")).to_have_count(0)
    assert page.evaluate("document.activeElement.innerText.trim()") == summary.inner_text().strip()
    summary.click()
    page.click("h1")
    expect(page.locator("details.menu[open]")).to_have_count(0)


def test_narrow_leaderboard_shows_values_and_a_scroll_hint(cast: Cast, page_for: Open) -> None:
    items = make_items(cast.project, 5)  # fewer items give no interval
    make_ratings(cast.project, make_outputs(cast.project, items, ("sys-a", "sys-b")))
    page = page_for(cast.researcher, width=390)
    page.goto("/projects/alpha/systems/?intervals=1")
    value = page.locator("tbody tr").first.locator("td.num .narrow-only")
    expect(value).to_contain_text(" to ", use_inner_text=True)
    box = value.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    assert "linear-gradient" in page.locator(".table-wrap").first.evaluate(
        "element => getComputedStyle(element).background"
    )


def test_error_codes_break_only_at_hyphens(page_for: Open) -> None:
    """Each line of a code ends at a hyphen or at the end of the code."""
    page = page_for(None, width=390)
    page.goto("/docs/errors")
    broken = page.locator("th code").evaluate_all(
        """all => all.filter((element) => {
          const text = element.firstChild, range = document.createRange();
          let previous = null, broken = false;
          for (let index = 0; index < text.length; index++) {
            range.setStart(text, index); range.setEnd(text, index + 1);
            const top = range.getBoundingClientRect().top;
            if (previous !== null && top > previous + 2 && text.data[index - 1] !== "-") broken = true;
            previous = top;
          }
          return broken;
        }).map((element) => element.textContent)"""
    )
    assert broken == []


def test_texts_in_tables_break_between_words_only(cast: Cast, page_for: Open) -> None:
    items = make_items(cast.project, 1)
    outputs = make_outputs(cast.project, items, ("sys-a", "sys-b"))
    Output.objects.filter(pk=outputs[0].pk).update(text="I know one where the loser makes tea.")
    for aspect in ("naturalness", "relevance", "informativeness"):
        make_ratings(cast.project, outputs, aspect=aspect)
    page = page_for(cast.researcher, width=360)
    page.goto(f"/projects/alpha/items/{items[0].pk}/")
    text = page.locator("td .text", has_text="the loser makes tea")
    assert text.bounding_box()["width"] >= 200


def test_name_of_the_campaign_breaks_between_words_only(cast: Cast, page_for: Open) -> None:
    campaign = open_comparison(cast, name="Which description is better?")
    page = open_judging_page(page_for(cast.annotator, width=360), campaign)
    title = page.locator(".judging-head h1")
    height = title.evaluate("element => parseFloat(getComputedStyle(element).lineHeight)")
    assert title.bounding_box()["height"] < 1.5 * height
