"""A long run in a real browser: its progress moves, cancel takes effect, and nothing of it stays."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Output, Upload
from evalapp.common.models import Run
from tests.browser.acting import working
from tests.cast import Cast
from tests.factories import make_items

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROWS = 100_000


def test_progress_and_cancel(cast: Cast, page_for: Callable[..., Any], site: Any, tmp_path: Path) -> None:
    item = make_items(cast.project, 1)[0]
    path = tmp_path / "outputs.jsonl"
    with path.open("w") as file:
        for step in range(ROWS):
            row = {"item": item.key, "system": "new", "text": f"Answer {step}.", "step": step}
            file.write(json.dumps(row) + "\n")
    page = page_for(cast.researcher)
    page.set_default_timeout(60_000)
    page.goto(f"/projects/{cast.project.slug}/uploads/")
    page.set_input_files("input[type=file]", path)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/uploads/*/")
    run = Upload.objects.get().run
    page.goto(f"/projects/{cast.project.slug}/runs/{run.pk}/")
    page.wait_for_selector("text=Waiting")
    with working(site, run.pk):
        # The bar comes and moves without the page being loaded again.
        page.wait_for_selector("progress[value]:not([value='0'])", timeout=60_000)
        began = time.monotonic()
        page.locator("#run-cancel").click()
        page.wait_for_selector("#run :text-is('Cancelled')", timeout=20_000)
        assert time.monotonic() - began < 15
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert Output.objects.count() == 0
    assert page.locator("#run[hx-trigger]").count() == 0

    page.locator("#run-retry").click()
    page.wait_for_selector("text=Waiting")
    page.locator("#run-cancel").click()
    page.wait_for_selector("#run :text-is('Cancelled')")
