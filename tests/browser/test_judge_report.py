"""The report of a judge in Chromium: part of the groups, counted looks, alignment, and a campaign by one click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.utils import timezone
from playwright.sync_api import expect

from annotation.models import Campaign, Rating
from scoring.models import Evaluator, Score, ScoreSet
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.browser
CONFIG = {
    "endpoint": "hosted", "model": "large-2", "aspect": "quality", "kind": "pointwise", "template": "plain",
    "template_text": "{question}{output}{answer_format}", "campaign": "", "question": "How good?", "low": 1, "high": 5,
    "step": 1, "labels": {}, "guidelines": "", "references": "", "method": "json", "temperature": 0.0, "samples": 1,
    "pairs": "", "examples": 0, "seed": 13, "split": "browser",
}  # fmt: skip


@pytest.fixture
def judged(cast: Cast) -> Cast:
    """30 items, two systems, three raters, and a judge that rates as they do but for some noise."""
    outputs = make_outputs(cast.project, make_items(cast.project, 30), ("sys-a", "sys-b"))
    make_ratings(cast.project, outputs, raters=3)
    rng = np.random.default_rng(4)
    row = Evaluator.objects.create(
        project=cast.project, slug="lena", name="judge", kind=Evaluator.Kind.JUDGE, options=CONFIG,
        record={"model": "large-2"},
    )  # fmt: skip
    score_set = ScoreSet.objects.create(
        project=cast.project, evaluator=row, aspect="quality", signature="judge|v:1", scored_at=timezone.now(),
        n_scores=len(outputs),
    )  # fmt: skip
    for output in outputs:
        mean = np.mean(list(Rating.objects.filter(output=output).values_list("value", flat=True)))
        value = float(np.clip(mean + rng.normal(scale=0.7), 1, 5))
        Score.objects.create(score_set=score_set, output=output, value=value, note="", input_hash="0" * 64)
    return cast


def test_report_looks_and_campaign(judged: Cast, page_for: Callable[..., Any]) -> None:
    page = page_for(judged.researcher)
    page.goto(f"/projects/{judged.project.slug}/evaluators/lena/report/")
    note = page.locator("[data-part]")
    expect(note).to_have_attribute("data-part", "development")
    expect(note).to_contain_text("The test part was shown 0 times.")
    for name in ("Agreement", "In place of a rater", "Bias", "Calibration"):
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Confusion matrix")).to_be_visible()
    page.get_by_role("button", name="Show the test part (counted)").click()
    expect(note).to_have_attribute("data-part", "test")
    expect(note).to_contain_text("The test part was shown 1 time.")
    shown, correlation = (page.locator("#agreement dd").nth(k).inner_text().split()[0] for k in (1, 2))

    page.get_by_role("link", name="Align with people").click()
    row = page.locator("#versions tbody tr")
    expect(row).to_have_count(1)
    expect(row.locator("td").last).to_contain_text(f"Alpha {shown}")
    expect(row.locator("td").last).to_contain_text(f"Spearman {correlation}")
    expect(page.locator("[data-looks]")).to_have_attribute("data-looks", "1")
    # Reading the history again is no look.
    page.reload()
    expect(page.locator("[data-looks]")).to_have_attribute("data-looks", "1")
    expect(page.locator("#outputs tbody tr").first).to_contain_text("Disagreement with raters")
    n = page.locator("#outputs tbody tr").count()
    page.get_by_role("button", name="Make a campaign").click()
    expect(page.get_by_role("heading", name="Alignment of lena").first).to_be_visible()
    campaign = Campaign.objects.get(project=judged.project)
    assert len(campaign.plan["outputs"]) == n
    assert campaign.state == Campaign.State.DRAFT


def test_report_on_a_phone(judged: Cast, page_for: Callable[..., Any]) -> None:
    page = page_for(judged.researcher, width=360)
    for path in ("report", "alignment"):
        page.goto(f"/projects/{judged.project.slug}/evaluators/lena/{path}/")
        width = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width[0] <= width[1], path
