"""The training form in a browser: training is offered only while the form is as it was checked, and an invalid form
focuses its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from evalapp.common.models import Run
from scoring.services.training import TrainingOptions, plan_params
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.browser
#: The result of a check, as far as the page shows it.
PLAN = {
    "examples": {"items": 4}, "models": 2, "steps": 10, "seconds": 5.0, "notes": [], "items": 4, "outputs": 8,
    "ratings": 16, "comparisons": 0, "dialogues": 0, "simulated": 0,
}  # fmt: skip


def test_changed_form_must_be_checked_again(cast: Cast, page_for: Callable[..., Any]) -> None:
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 4)))
    params = {**plan_params(cast.project, TrainingOptions("comparative", aspect="quality", folds=2)), "name": "mine"}
    check = Run.objects.create(
        project=cast.project, kind="plan", title="Check", params=params, input_hash="1", state="succeeded", result=PLAN
    )
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/evaluators/train/comparative/?check={check.pk}")
    main = page.locator("button.primary:visible")
    expect(main).to_have_text(["Train"], use_inner_text=True)
    page.fill("#id_name", "another")
    page.wait_for_selector("[data-while=changed]:visible")
    expect(main).to_have_text(["Check again"], use_inner_text=True)
    page.fill("#id_name", "mine")
    page.wait_for_selector("button:has-text('Train'):visible")
    expect(main).to_have_text(["Train"], use_inner_text=True)


def test_result_of_a_check_scrolls_into_view(cast: Cast, page_for: Callable[..., Any]) -> None:
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 4)))
    params = plan_params(cast.project, TrainingOptions("comparative", aspect="quality", folds=2))
    check = Run.objects.create(
        project=cast.project, kind="plan", title="Check", params=params, input_hash="1", state="running"
    )
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/evaluators/train/comparative/?check={check.pk}#check")
    page.wait_for_function("() => scrollY > 0")
    Run.objects.filter(pk=check.pk).update(state="succeeded", result=PLAN)
    page.wait_for_selector("#check .figures")
    page.wait_for_function(
        "() => { const top = document.querySelector('#check h2').getBoundingClientRect().top; "
        "return top >= -1 && top < innerHeight / 2; }"
    )


def test_invalid_form_focuses_its_errors(cast: Cast, page_for: Callable[..., Any]) -> None:
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 4)))
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/evaluators/train/ream/")
    page.click("summary:has-text('Options')")
    page.fill("#id_option_sizes", "a,b")
    page.click("#check-button")
    page.wait_for_selector("[role=alert]")
    page.wait_for_function("() => document.activeElement.matches('[role=alert]')")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash === '#id_option_sizes'")
    expect(page.locator("#id_option_sizes")).to_be_visible()
