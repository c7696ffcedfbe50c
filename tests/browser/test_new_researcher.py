"""A new researcher, from an empty project to a report on several metrics against human ratings, in few clicks.
Every click on the way is counted, also the one that opens the choice of files; typing is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from annotation.models import Campaign, Rating, Upload
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.accounts.models import User
from evalapp.common.models import Run
from tests.browser.worker_process import execute_in_worker
from tests.cast import Cast, person

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST_CLICKS = 25
#: "length", "overlap" and "random", which are preselected, and all metrics that compare words with references.
BASELINES, OTHERS = {"length", "overlap", "random"}, {"bleu-4", "chrf", "rouge-l", "meteor"}
ITEMS, SYSTEMS = 6, ("good", "long", "poor")


class Mouse:
    """Clicks on a page and counts them."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks = page, 0

    def click(self, place: Any) -> None:
        self.clicks += 1
        (self.page.locator(place) if isinstance(place, str) else place).click()

    def choose(self, place: str, *files: Path) -> None:
        self.clicks += 1
        self.page.set_input_files(place, list(files))


def write_files(folder: Path) -> Iterator[Path]:
    texts = {"good": "We could walk to lake {k}.", "long": "Well, well, well, who knows {k}, who knows.", "poor": "{k}"}
    tables = {
        "items": [
            {"id": f"i{k}", "context": [f"Where shall we go on day {k}?"], "references": [f"Let us walk to lake {k}."]}
            for k in range(ITEMS)
        ],
        "outputs": [
            {"item": f"i{k}", "system": name, "text": texts[name].format(k=k)} for k in range(ITEMS) for name in SYSTEMS
        ],
    }
    for name, rows in tables.items():
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        yield path


def rate_all(user: User, campaign: Campaign) -> None:
    """The annotator's work, whose clicks are counted elsewhere (test_judging)."""
    while (shown := get_next_assignment(user=user, campaign_id=campaign.pk).shown) is not None:
        text = shown.texts[0]
        value = 5 if "walk" in text else 3 if "Well" in text else 1
        submit_answer(user=user, public=shown.public, submission=uuid4(), answer={"quality": value}, seconds=4.0)


def join(page: Any, link: str) -> None:
    page.goto(link)
    page.click("main button.primary")
    page.wait_for_url("**/my/**")
    page.wait_for_load_state("networkidle")
    page.close()  # it would answer beside `rate_all`


def test_from_an_empty_project_to_a_report(cast: Cast, page_for: Callable[..., Any], site: Any, tmp_path: Path) -> None:
    page = page_for(cast.owner)
    mouse = Mouse(page)
    page.goto("/projects/alpha/")

    # Data
    mouse.click("ol.steps li.next a.button")
    mouse.choose("input[type=file]", *write_files(tmp_path))
    mouse.click("main form button.primary")
    page.wait_for_selector("#upload-cancel")
    execute_in_worker(site, Upload.objects.get().run_id)
    page.wait_for_selector(".status[data-state=done]")

    # A campaign, and its link
    mouse.click(page.get_by_role("link", name="Collect", exact=True))
    mouse.click(page.get_by_role("link", name="New campaign", exact=True))
    page.fill("[name=name]", "First impressions")
    page.fill("[name='aspects-0-name']", "quality")
    page.fill("[name='aspects-0-question']", "How good is it?")
    page.wait_for_selector(f"#estimate[data-estimate='{2 * ITEMS * len(SYSTEMS)}']")
    mouse.click(".plan-side button.primary")
    mouse.click("form[action$='/open/'] button")
    link = page.input_value("#secret-invitation")
    mouse.click("button[data-copy]")
    campaign = Campaign.objects.get()
    for user in (cast.stranger, person("ned")):
        join(page_for(user), link)
        rate_all(user, campaign)
    assert Rating.objects.count() == 2 * ITEMS * len(SYSTEMS)

    # Metrics
    mouse.click(page.get_by_role("link", name="Metrics", exact=True))
    mouse.click("[data-tick=words]")
    mouse.click("#score-form button.primary")
    mouse.click("main form[method=post] button.primary")
    page.wait_for_url("**/runs/?kind=score")
    execute_in_worker(site, *Run.objects.filter(kind="score").order_by("pk").values_list("pk", flat=True))
    assert set(Run.objects.filter(kind="score").values_list("state", flat=True)) == {"succeeded"}

    # The leaderboard
    mouse.click(page.get_by_role("link", name="Results", exact=True))
    mouse.click(page.get_by_role("link", name="Metrics vs. humans", exact=True))
    rows = {text.split()[0] for text in page.locator("main table").first.locator("tbody th").all_inner_texts()}
    assert rows >= BASELINES | OTHERS

    # The report, for someone who does not sign in
    mouse.click(page.get_by_role("link", name="Reports", exact=True))
    mouse.click(".empty a.button")
    mouse.click("main form button.primary")
    link = page.input_value("#secret-report")
    mouse.click("button[data-copy]")
    mouse.click("main a.button.primary")
    expect(page.locator(".report")).to_contain_text("bleu-4", use_inner_text=True)
    reader = page_for(None)
    reader.goto(link)
    expect(reader.locator("main")).to_contain_text("bleu-4", use_inner_text=True)
    print(f"{mouse.clicks} clicks")
    assert mouse.clicks <= MOST_CLICKS
