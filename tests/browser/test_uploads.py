"""Uploads in a browser: a faulty row, the corrected file, and undo. The page updates itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import Output, Upload
from tests.browser.worker_process import execute_in_worker
from tests.cast import Cast
from tests.factories import make_items

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def write_outputs(folder: Path, items: list[str]) -> Path:
    path = folder / "outputs.jsonl"
    rows = [{"item": item, "system": "new", "text": f"An answer to {item}.", "step": None} for item in items]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def get_last_run() -> int:
    return Upload.objects.latest("pk").run_id


def test_faulty_row_then_corrected_then_undone(
    cast: Cast, page_for: Callable[..., Any], site: Any, tmp_path: Path
) -> None:
    make_items(cast.project, 3)
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/uploads/")

    # A file with a row for a missing item. No worker is running, and the page says so.
    page.set_input_files("input[type=file]", write_outputs(tmp_path, ["i000", "i999", "i002"]))
    page.get_by_role("button", name="Upload").click()
    page.wait_for_selector("[data-unserved]")
    expect(page.locator("#upload[hx-trigger]")).to_have_count(1)
    execute_in_worker(site, get_last_run())
    page.wait_for_selector("#upload-faults")
    cells = page.locator("#upload-faults tbody tr").first.locator("td").all_inner_texts()
    assert cells[:3] == ["outputs.jsonl", "2", "item"]
    assert "i999" in cells[3]
    assert Output.objects.count() == 0
    # A finished upload is not polled; the page may poll once more before the run ends.
    page.wait_for_selector("#upload:not([hx-trigger])")

    # The corrected file is stored, and the page says so without being reloaded.
    page.get_by_role("link", name="Uploads").first.click()
    page.set_input_files("input[type=file]", write_outputs(tmp_path, ["i000", "i001", "i002"]))
    page.get_by_role("button", name="Upload").click()
    page.wait_for_selector("#upload-cancel")
    execute_in_worker(site, get_last_run())
    page.wait_for_selector(".status[data-state=done]")
    assert Output.objects.count() == 3

    page.locator("#upload-undo").click()
    page.wait_for_selector(".status[data-state=undone]")
    assert Output.objects.count() == 0


def test_file_that_is_no_table(cast: Cast, page_for: Callable[..., Any], tmp_path: Path) -> None:
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/uploads/")
    path = tmp_path / "holiday.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    page.set_input_files("input[type=file]", path)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator(".has-error")).to_be_visible()
    assert Upload.objects.count() == 0
