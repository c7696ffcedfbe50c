"""The five learned evaluators from training to the leaderboards in Chromium, with a real worker, on a sixth of the
demonstration. The encoder is tiny and training takes a few steps: the tests cover the path, not the figures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from evalapp.accounts.models import Project, User
from evalapp.accounts.roles import Role
from evalapp.common.queue import queue_has_worker
from scoring.ml.registry import get_entry
from tests.browser.conftest import ROOT, TIMEOUT_MS, Site, new_database, redis_database_url, run_site
from tests.cast import join, person
from tests.evalapp.common.conftest import wait_until
from tests.scoring.ml.tiny import tiny_encoder
from tests.short_training import LEARNED, SHORT, SHORT_SCORING, fields, load, part

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.server("redis")]
__all__ = ["part"]

# Generous, for busy machines.
TRAINING_TIMEOUT_MS = 5 * TIMEOUT_MS


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A web process for this module, with a queue and a tiny encoder."""
    folder = tmp_path_factory.mktemp("evaluators-site")
    encoder = tiny_encoder("bert", folder / "tiny")
    with new_database(request, folder) as database:
        yield from run_site(folder, database, REDIS_URL=redis_database_url(14), ENCODERS=encoder)


@pytest.fixture
def rita(site: Site, db: None, part: Path, settings: Any) -> User:
    """A researcher in a project with the demonstration's data; a worker is running."""
    settings.ARTEFACTS_DIR = site.folder / "artefacts"
    load(part, "length", "random")
    researcher = person("rita")
    join(Project.objects.get(slug="demo"), researcher, Role.RESEARCHER)
    celery = [
        sys.executable, "-m", "celery", "--quiet", "-A", "evalapp", "worker", "--include", "tests.scoring.toy_worker",
        "--queues", "cpu,gpu", "--concurrency", "1", "--loglevel", "WARNING",
    ]  # fmt: skip
    with (site.folder / "worker.log").open("ab") as log:
        site.family.spawn("worker", celery, cwd=ROOT, env=site.env, output=log)
    wait_until(lambda: queue_has_worker("gpu"), seconds=180)
    return researcher


def test_all_five_are_trained_applied_and_compared(rita: User, site: Site, page_for: Callable[..., Any]) -> None:
    page = page_for(rita)
    for name in LEARNED:
        _train(page, name, site.env["ENCODERS"])
        _apply(page, name)
    page.goto("/projects/demo/evaluation/?aspect=naturalness")
    if page.locator("text=It is being computed in run").count():
        page.wait_for_selector("table", timeout=TRAINING_TIMEOUT_MS)
    table = page.locator("table").first.inner_text()
    assert {f"my-{name}" for name in LEARNED} <= set(table.split())
    expect(page.locator("main")).to_contain_text("trivial baseline", use_inner_text=True)


def _train(page: Any, name: str, encoder: str) -> None:
    """From the list of evaluators through form, check and run, whose page updates itself, to the new evaluator."""
    entry = get_entry(name)
    page.goto("/projects/demo/evaluators/")
    page.click(f"a:has-text('Train'):has-text('{name}')")
    page.wait_for_selector(f"h1:has-text('Train {name}')")
    for summary in page.locator("form#train summary").all():
        summary.click()
    page.select_option("#id_encoder", encoder)
    values = {"name": f"my-{name}", "folds": 1, **fields(entry.train_options, SHORT)}
    for field, value in values.items():
        page.fill(f"#id_{field}", str(value))
    if entry.aspect == "one":
        page.select_option("#id_aspect", "naturalness")
    if page.locator("#id_apply").is_checked():
        page.uncheck("#id_apply")
    page.click("#check-button")
    page.wait_for_selector("#check .figures", timeout=TRAINING_TIMEOUT_MS)
    page.click("button:has-text('Train'):visible")
    page.wait_for_selector(f"main:has(#run-state) h1:has-text('my-{name}')")
    _wait_for_end(page)
    if entry.parse_train_options(entry.profiles[0], {}).get("stages") != "head":  # a head alone has one optimum
        page.wait_for_selector("#curve svg")
    page.click("#run-result-link")
    page.wait_for_selector(f"h1:has-text('my-{name}')")
    expect(page.locator("[data-unapplied]")).to_have_count(1)
    expect(page.locator("#system-scores")).to_have_count(0)


def _apply(page: Any, name: str) -> None:
    """From the page of the evaluator to its scores and to the systems ranked by it."""
    page.click("a.primary:has-text('Apply')")
    for field, value in fields(get_entry(name).options, SHORT_SCORING).items():
        page.fill(f"#id_{field}", str(value))
    page.click("button:has-text('Apply')")
    page.wait_for_selector(f"main:has(#run-state) h1:has-text('my-{name}')")
    _wait_for_end(page)
    page.click("#run-result-link")
    expect(page.locator("#system-scores tbody tr").nth(6)).to_be_visible()
    page.click("a:has-text('with 95 % intervals')")
    page.wait_for_selector(f"text=/core of my-{name}/")
    expect(page.locator("table").first.locator("tbody tr").nth(6)).to_be_visible()


def _wait_for_end(page: Any) -> None:
    """Wait, without reloading, until the page of a run shows that it succeeded."""
    ended = ", ".join(f"#run-state [data-state={state}]" for state in ("succeeded", "failed", "cancelled"))
    state = page.wait_for_selector(ended, timeout=TRAINING_TIMEOUT_MS).get_attribute("data-state")
    assert state == "succeeded", page.locator("#run").inner_text()
