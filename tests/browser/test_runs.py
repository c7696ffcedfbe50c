"""A long run in a real browser: its progress moves by itself, cancel takes effect within seconds, retry queues it
again. The job only counts: a real one would end too soon on a fast machine and too late on a slow one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from evalapp.common.models import Run, RunLog
from evalapp.common.queue import input_hash
from scoring.models import CurvePoint
from tests.browser.acting import working
from tests.cast import Cast

pytestmark = pytest.mark.browser
PARAMS = {"steps": 1200, "pause": 0.1}


def test_who_was_signed_out_meanwhile_is_told(cast: Cast, page_for: Callable[..., Any]) -> None:
    run = Run.objects.create(project=cast.project, kind="test-count", title="Count", params=PARAMS, input_hash="1")
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/runs/{run.pk}/")
    page.wait_for_selector("text=Waiting")
    page.context.clear_cookies()
    page.wait_for_selector("text=You are signed out.")
    page.wait_for_timeout(1500)  # it asks again, and says it once
    assert page.locator("text=You are signed out.").count() == 1
    assert page.locator("h1").all_inner_texts() == ["Count"]


def test_a_page_that_goes_on_takes_nothing_away(cast: Cast, page_for: Callable[..., Any]) -> None:
    """Neither the focus nor a selection in the log, nor what was opened or closed."""
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
          for (const name of ["#run-lines", "#run-cancel", "#curve details"]) document.querySelector(name).kept = true;
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
    assert page.locator("details[open]").evaluate_all("all => all.map((one) => one.id)") == ["run-asked", ""]
    for name in ("#run-lines", "#run-cancel", "#curve details"):
        assert page.evaluate("(name) => document.querySelector(name).kept", name)
    assert page.locator("#run-lines").inner_text().count("line 5\n") == 1
    Run.objects.update(state="succeeded", result={"counted": 12})
    page.wait_for_selector("#run-state :text-is('Done')")
    page.wait_for_selector("#run-result")
    assert page.locator("#run [hx-trigger], #run-cancel").count() == 0
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
    with working(site, run.pk, jobs="tests.evalapp.common.run_jobs"):
        # The bar comes and moves without the page being loaded again.
        page.wait_for_selector("progress[value]:not([value='0'])")
        began = time.monotonic()
        page.locator("#run-cancel").click()
        page.wait_for_selector("#run :text-is('Cancelled')")
        assert time.monotonic() - began < 30  # of two minutes; the worker's own five seconds are in test_tasks
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert 0 < run.done < run.total
    assert page.locator("#run [hx-trigger]").count() == 0

    page.locator("#run-retry").click()
    page.wait_for_selector("text=Waiting")
    page.locator("#run-cancel").click()
    page.wait_for_selector("#run :text-is('Cancelled')")
