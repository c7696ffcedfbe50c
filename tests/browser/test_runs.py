"""The page of a long run in a browser: progress updates itself, cancel takes effect within seconds, retry queues the
run again. The job only counts, because the duration of a real one would depend on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from evalapp.common.models import Run, RunLog
from evalapp.common.queue import input_hash
from scoring.models import CurvePoint
from tests.browser.worker_process import start_worker
from tests.cast import Cast

pytestmark = pytest.mark.browser
PARAMS = {"steps": 1200, "pause": 0.1}


def test_signed_out_user_is_notified_once(cast: Cast, page_for: Callable[..., Any]) -> None:
    run = Run.objects.create(project=cast.project, kind="test-count", title="Count", params=PARAMS, input_hash="1")
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/runs/{run.pk}/")
    page.wait_for_selector("text=Waiting")
    page.context.clear_cookies()
    page.wait_for_selector("#messages [data-level=warning]")
    page.wait_for_timeout(1500)  # the page polls again
    expect(page.locator("#messages [data-level=warning]")).to_have_count(1)
    expect(page.locator("h1")).to_have_text(["Count"], use_inner_text=True)


def test_live_update_keeps_focus_selection_and_open_sections(cast: Cast, page_for: Callable[..., Any]) -> None:
    run = Run.objects.create(
        project=cast.project, kind="train", title="Count", params=PARAMS, input_hash="1", state="running", done=1
    )
    RunLog.objects.bulk_create(RunLog(run=run, text=f"line {number}") for number in range(25))
    CurvePoint.objects.bulk_create(CurvePoint(run=run, series="a", step=step, loss=step) for step in (1, 2))
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/runs/{run.pk}/")
    page.click("#run-asked summary")
    page.click("#curve summary")
    page.focus("#run-lines")
    page.evaluate(
        """() => {
          const text = document.querySelector("#run-lines").firstChild;
          getSelection().setBaseAndExtent(text, 10, text, 17);
          for (const name of ["#run-lines", "#run-cancel", "#curve details"]) document.querySelector(name).same = true;
        }"""
    )
    assert page.evaluate("getSelection().toString()") == "line 5\n"
    RunLog.objects.create(run=run, text="the newest line")
    CurvePoint.objects.create(run=run, series="a", step=1300, loss=7)
    Run.objects.update(done=12)
    page.wait_for_selector("#run-lines >> text=the newest line")
    page.wait_for_selector("#run-progress >> text=12")
    page.wait_for_selector("#curve >> text=1,300")
    assert page.evaluate("getSelection().toString()") == "line 5\n"
    assert page.evaluate("document.activeElement.id") == "run-lines"
    assert page.locator("details[open]").evaluate_all("all => all.map((element) => element.id)") == ["run-asked", ""]
    for name in ("#run-lines", "#run-cancel", "#curve details"):
        assert page.evaluate("(name) => document.querySelector(name).same", name)
    assert page.locator("#run-lines").inner_text().count("line 5\n") == 1
    Run.objects.update(state="succeeded", result={"counted": 12})
    page.wait_for_selector("#run-state [data-state=succeeded]")
    page.wait_for_selector("#run-result")
    expect(page.locator("#run [hx-trigger], #run-cancel")).to_have_count(0)
    assert page.evaluate("document.activeElement.id") == "run-lines"


@pytest.mark.slow
def test_progress_and_cancel(cast: Cast, page_for: Callable[..., Any], site: Any) -> None:
    run = Run.objects.create(
        project=cast.project,
        kind="test-count",
        title="Count slowly",
        params=PARAMS,
        input_hash=input_hash("test-count", cast.project.pk, PARAMS),
    )
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/runs/{run.pk}/")
    page.wait_for_selector("text=Waiting")
    with start_worker(site, run.pk, jobs="tests.evalapp.common.run_jobs"):
        # The progress bar appears and moves without reloading the page.
        page.wait_for_selector("progress[value]:not([value='0'])")
        started = time.monotonic()
        page.locator("#run-cancel").click()
        page.wait_for_selector("#run-state [data-state=cancelled]")
        assert time.monotonic() - started < 30  # instead of two minutes
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert 0 < run.done < run.total
    expect(page.locator("#run [hx-trigger]")).to_have_count(0)

    page.locator("#run-retry").click()
    page.wait_for_selector("text=Waiting")
    page.locator("#run-cancel").click()
    page.wait_for_selector("#run-state [data-state=cancelled]")
