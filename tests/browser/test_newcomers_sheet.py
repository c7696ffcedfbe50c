"""A newcomer with a spreadsheet of own columns, from an empty project to a leaderboard, in few clicks. The
page works without script. Every click is counted, also the one that opens the choice of files."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import Item, Output, Rating, Upload
from tests.browser.test_new_researcher import Mouse
from tests.browser.worker_process import execute_in_worker
from tests.cast import Cast

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST_CLICKS = 12
ITEMS, SYSTEMS = 12, 18


def write_sheet(path: Path) -> None:
    """40 columns: id, prompt, answer by a person, a note; then the reply and the rating of each system."""
    systems = [f"model {k}" for k in range(SYSTEMS)]
    rows = [["Example", "User prompt", "Gold answer", "Topic", *systems, *(f"{name}: quality" for name in systems)]]
    for i in range(ITEMS):
        replies = [f"On day {i} I would take path {k} to the lake." for k in range(SYSTEMS)]
        ratings = [1 + (i + k) % 3 + k // 9 for k in range(SYSTEMS)]
        rows.append([f"ex{i}", f"What shall we do on day {i}?", f"Walk to lake {i}.", "trips", *replies, *ratings])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert len(rows[0]) == 40


def test_from_my_spreadsheet_to_a_leaderboard(
    cast: Cast, page_for: Callable[..., Any], site: Any, axe: Callable[..., list[str]], tmp_path: Path
) -> None:
    sheet = tmp_path / "results of may.csv"
    write_sheet(sheet)
    page = page_for(cast.owner)
    mouse = Mouse(page)
    page.goto("/projects/alpha/")
    mouse.click("ol.steps li.next a.button")
    mouse.choose("input[type=file]", sheet)
    mouse.click("main form button.primary")

    # The proposal, with the first rows in both forms
    expect(page.locator("[data-made=outputs] tbody tr")).not_to_have_count(0)
    expect(page.locator("[data-made=ratings] tbody tr")).not_to_have_count(0)
    expect(page.locator("#given tbody tr")).to_have_count(5)
    expect(page.locator("select[name^=role-]")).to_have_count(40)
    assert axe(page) == []
    mouse.click("#import button.primary")
    expect(page.locator("#upload-cancel")).to_be_visible()
    execute_in_worker(site, Upload.objects.get().run_id)
    expect(page.locator(".status[data-state=done]")).to_be_visible()
    assert (Item.objects.count(), Output.objects.count()) == (ITEMS, ITEMS * SYSTEMS)
    assert Rating.objects.count() == ITEMS * SYSTEMS

    mouse.click(page.get_by_role("link", name="Results", exact=True))
    expect(page.locator("main table tbody tr", has_text="model 17")).not_to_have_count(0)
    print(f"{mouse.clicks} clicks")
    assert mouse.clicks <= MOST_CLICKS


def test_without_script(cast: Cast, page_for: Callable[..., Any], site: Any, tmp_path: Path) -> None:
    """Upload, a change of a column, the rows that follow from it, and the import, on a narrow screen."""
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("id,question,gpt output,llama output,seconds\nq1,Where?,It is there.,Here it is.,3\n")
    page = page_for(cast.owner, width=390, script=False)
    page.goto("/projects/alpha/uploads/")
    page.set_input_files("input[type=file]", sheet)
    page.click("main form button.primary")
    expect(page.locator("[data-left-out]")).to_have_text(["seconds"])
    # The choice for a column is not cut off.
    box = page.locator("select[name=role-0]").bounding_box()
    assert box["x"] + box["width"] <= 390
    page.select_option("select[name=role-4]", "meta")
    page.click("#columns button[value=show]")
    expect(page.locator("[data-left-out]")).to_have_count(0)
    page.click("#import button.primary")
    execute_in_worker(site, Upload.objects.get().run_id)
    assert Output.objects.count() == 2
    assert Item.objects.get().meta == {"seconds": "3"}
