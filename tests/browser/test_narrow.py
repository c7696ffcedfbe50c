"""Menus and tables in a narrow window: what they show of themselves, and how a menu is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from annotation.models import Output
from evalapp.common.runner import execute_run
from scoring.services.scores import apply_evaluator
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.browser
Open = Callable[..., Any]


@pytest.mark.parametrize("width", [390, 820, 1100, 1280])
@pytest.mark.parametrize("address", ["systems/steps/", "evaluation/", "references/enhanced/"])
def test_a_menu_among_choices_can_be_read_and_left(cast: Cast, page_for: Open, width: int, address: str) -> None:
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
    name = page.locator(".inline-form summary:has-text('Evaluators')")
    name.click()
    (menu, *boxes) = page.locator(".inline-form .menu[open] > div, .inline-form .menu[open] label").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().toJSON())"
    )
    (mark, *_) = page.locator(".inline-form .menu[open] input").evaluate_all("all => all.map((one) => one.offsetWidth)")
    assert mark < 24
    assert len(boxes) == 2
    for box in (menu, *boxes):
        assert box["left"] >= 0
        assert box["right"] <= width
    page.keyboard.press("Escape")
    assert page.locator("details.menu[open]").count() == 0
    assert page.evaluate("document.activeElement.innerText.trim()") == name.inner_text().strip()
    name.click()
    page.click("h1")
    assert page.locator("details.menu[open]").count() == 0


def test_a_narrow_leaderboard_shows_figures_and_that_it_goes_on(cast: Cast, page_for: Open) -> None:
    items = make_items(cast.project, 5)  # fewer items give no interval
    make_ratings(cast.project, make_outputs(cast.project, items, ("sys-a", "sys-b")))
    page = page_for(cast.researcher, width=390)
    page.goto("/projects/alpha/systems/")
    value = page.locator("tbody tr").first.locator("td.num .narrow-only")
    assert " to " in value.inner_text()
    box = value.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    assert "linear-gradient" in page.locator(".table-wrap").first.evaluate("one => getComputedStyle(one).background")


def test_codes_of_errors_break_at_their_hyphens_only(page_for: Open) -> None:
    """Each line of a code ends at a hyphen or at its end."""
    page = page_for(None, width=390)
    page.goto("/docs/errors")
    broken = page.locator("th code").evaluate_all(
        """all => all.filter((one) => {
          const text = one.firstChild, range = document.createRange();
          let top = null, bad = false;
          for (let place = 0; place < text.length; place++) {
            range.setStart(text, place); range.setEnd(text, place + 1);
            const now = range.getBoundingClientRect().top;
            if (top !== null && now > top + 2 && text.data[place - 1] !== "-") bad = true;
            top = now;
          }
          return bad;
        }).map((one) => one.textContent)"""
    )
    assert broken == []
