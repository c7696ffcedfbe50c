"""Fixtures of the browser tests: a web process (gunicorn with production settings and its own database), Chromium with
signed-in users, and axe. Tests open pages with `page_for` and create rows through the models, in the database of the
web process. It is a SQLite file, or a PostgreSQL database with BROWSER_DATABASE=postgres:

    BROWSER_DATABASE=postgres make test ARGS=tests/browser"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from evalapp.ops.processes import Family
from tests.services.plugin import get_address

ROOT = Path(__file__).resolve().parents[2]
# Chromium loads two pages of its address bar for every window, half a second of computing that no test needs. It reads
# only the last list of features, so the others are those that Playwright turns off.
UNUSED_FEATURES = (
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup",
    "AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay", "MediaRouter",
    "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)  # fmt: skip
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-quic",
    "--disable-background-networking",
    f"--disable-features={','.join(UNUSED_FEATURES)}",
)
# Generous limits, for busy machines.
START_SECONDS = 180
TIMEOUT_MS = 60_000
# Most of axe's time goes into contrast, measured for each text. Table rows and list items with the same elements,
# classes and position (first, last, even, odd) have the same colours, so contrast is checked on one row of each kind
# and all other rules on every row. Only violations are returned: complete axe results have megabytes.
MARK_SIMILAR_ROWS = """() => {
  const ignored = new Set(["href", "id", "name", "for", "value", "title", "datetime", "src", "alt", "aria-label"]);
  const describe = (element) => [
    element.tagName,
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()),
    ...[...element.attributes].filter(({ name }) => !ignored.has(name)).map(({ name, value }) => `${name}=${value}`),
  ].join();
  for (const parent of document.querySelectorAll("tbody, ul, ol")) {
    const seen = new Set();
    [...parent.children].forEach((row, index, { length }) => {
      const parts = [row, ...row.querySelectorAll("*")].map(describe);
      const key = [...parts, index === 0, index === length - 1, index % 2].join("|");
      if (seen.has(key)) row.dataset.similar = "";
      seen.add(key);
    });
  }
}"""
#: Rules that depend on the colour scheme, and on the width of the window.
COLOURS = ("color-contrast", "link-in-text-block")
WIDTHS = ("scrollable-region-focusable", "target-size", "aria-hidden-focus", "skip-link")
RUN_AXE = """async ([colours, only]) => {
  const resultTypes = ["violations"];
  const runs = [];
  if (only === null || only.some((name) => colours.includes(name))) {
    runs.push([{ exclude: [["[data-similar]"]] }, { resultTypes, runOnly: { type: "rule", values: colours } }]);
  }
  const others = Object.fromEntries(colours.map((name) => [name, { enabled: false }]));
  if (only === null) runs.push([document, { resultTypes, rules: others }]);
  else if (!runs.length) runs.push([document, { resultTypes, runOnly: { type: "rule", values: only } }]);
  const violations = [];
  for (const [context, options] of runs) violations.push(...(await axe.run(context, options)).violations);
  return violations.map(({ id, help, nodes }) => ({ id, help, targets: nodes.map((node) => node.target) }));
}"""
ON_POSTGRES = os.environ.get("BROWSER_DATABASE") == "postgres"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if ON_POSTGRES:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.server("postgres"))


@dataclass
class Site:
    """A running installation. `manage` runs a command in it; the web process can be killed and restarted."""

    url: str
    folder: Path
    env: dict[str, str] = field(repr=False)
    database: str = ""
    web: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    #: Ends its children even if this process is killed.
    family: Family = field(default_factory=Family, repr=False)

    def start(self) -> None:
        log = self.folder / "web.log"
        command = [
            sys.executable, "-m", "gunicorn", "evalapp.wsgi", "--bind", self.url.removeprefix("http://"),
            "--workers", "1", "--threads", "8", "--keep-alive", "2", "--graceful-timeout", "2",
        ]  # fmt: skip
        with log.open("ab") as output:
            self.web = self.family.spawn("web", command, cwd=ROOT, env=self.env, output=output).process
        _wait_for(f"{self.url}/health/live", self.web, log)

    def kill(self) -> None:
        """Kill the web process, like a power failure."""
        assert self.web is not None
        os.killpg(self.web.pid, signal.SIGKILL)
        self.web.wait(10)

    def stop(self) -> None:
        if self.web is None:
            return
        self.web.terminate()
        try:
            self.web.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.env,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"The web process did not start:\n{log.read_text()[-4000:]}")


@contextmanager
def new_database(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """Copy the static files into the data folder, and yield the address of a new database with all tables."""
    from tests.services.plugin import create_temporary_database

    shutil.copytree(request.getfixturevalue("collected_static"), folder / "static")
    if ON_POSTGRES:
        with create_temporary_database("browser", request.getfixturevalue("_migrated_database")) as address:
            yield address
    else:
        shutil.copy(request.getfixturevalue("migrated_file"), folder / "evalapp.sqlite3")
        yield f"sqlite:///{folder / 'evalapp.sqlite3'}"


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One web process for all browser tests of the session."""
    folder = tmp_path_factory.mktemp("site")
    with new_database(request, folder) as database:
        yield from run_site(folder, database)


def redis_database_url(number: int) -> str:
    """Return the address of a Redis database for the tests of a module; the fixture `redis_url` is for a single
    test."""
    return urlunsplit(urlsplit(get_address("redis"))._replace(path=f"/{number}"))


def run_site(folder: Path, database: str, **variables: str) -> Iterator[Site]:
    from django.conf import settings

    port = _free_port()
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "evalapp.settings.base",
        "EVALAPP_DATA": str(folder),
        "DATABASE_URL": database,
        "SECRET_KEY": settings.SECRET_KEY,
        "ALLOWED_HOSTS": "127.0.0.1",
        "DEBUG": "0",
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    site = Site(f"http://127.0.0.1:{port}", folder, env, database)
    try:
        site.start()
        yield site
    finally:
        site.stop()
        site.family.close()


def empty_tables() -> None:
    """Delete all rows except those created by `migrate`. The command `flush` takes most of a second longer, because it
    recreates those rows and also deletes from empty tables."""
    from django.core.management.color import no_style
    from django.db import connection

    from evalapp.common.backup.tables import MADE_BY_MIGRATE

    ops, names = connection.ops, sorted(set(connection.introspection.django_table_names(True)) - MADE_BY_MIGRATE)
    if connection.vendor == "postgresql":
        statements = ops.sql_flush(no_style(), names, reset_sequences=True)
    else:
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in names))
            filled = [name for (name,) in cursor.fetchall()]
        statements = ops.sql_flush(no_style(), filled)
        statements += ops.sequence_reset_by_name_sql(no_style(), [{"table": name} for name in names])
    ops.execute_sql_flush(statements)


@pytest.fixture
def db(site: Site, django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The empty database of the web process; replaces the `db` fixture of other tests."""
    from django.conf import settings

    from tests.services.plugin import use_database

    # Playwright runs an event loop in this thread, so Django would refuse database access as asynchronous.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    # The web process finds the files of uploads that tests make.
    monkeypatch.setattr(settings, "UPLOADS_DIR", site.folder / "uploads")
    with django_db_blocker.unblock(), use_database(site.database):
        empty_tables()
        yield


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Any]:
    """One Chromium for the tests of a module. Not for the session: Playwright runs an event loop in this thread, and
    Django would refuse database access in all other tests of this process as asynchronous."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=list(CHROMIUM_ARGUMENTS))
        yield chromium
        chromium.close()


def press_only_when_loaded(page: Any) -> None:
    """Let every key wait until the page has loaded: keys that are pressed before its script runs do nothing."""
    for name in ("press", "type"):

        def press(*values: Any, act: Callable[..., None] = getattr(page.keyboard, name), **options: Any) -> None:
            page.wait_for_load_state()
            act(*values, **options)

        setattr(page.keyboard, name, press)


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Record whether the test failed, so that `page_for` prints the state of its pages."""
    report: Any = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


def print_diagnostics(contexts: list[Any], traffic: list[str]) -> None:
    """Print text and storage of all open pages and the last requests, for the report of a failed test."""
    for page in [page for context in contexts for page in context.pages]:
        print(f"--- {page.url} ({page.title()})")
        with contextlib.suppress(Exception):
            print(page.inner_text("body")[:1500])
            print("storage:", page.evaluate("() => JSON.stringify(localStorage)")[:1500])
    print("--- requests:", *traffic[-40:], sep="\n")


@pytest.fixture
def page_for(browser: Any, site: Site, db: None, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """`page_for(user, width=, height=, scheme=)`: a page in a new browser context in which `user` is signed in (None:
    anonymous). Paths are relative to the site. Script errors and violations of the content security policy fail the
    test."""
    from django.test import Client

    contexts: list[Any] = []
    errors: list[str] = []
    traffic: list[str] = []

    def open_page(
        user: Any = None, *, width: int = 1100, height: int = 800, scheme: str = "light", script: bool = True
    ) -> Any:
        context = browser.new_context(
            base_url=site.url,
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        if user is not None:
            client = Client()
            client.force_login(user)
            cookie = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": site.url}])
        context.on("page", watch)
        return context.new_page()

    def watch(page: Any) -> None:
        press_only_when_loaded(page)
        page.on("request", lambda request: traffic.append(f"{request.method} {request.url}"))
        page.on("response", lambda reply: traffic.append(f"  {reply.status} {reply.request.method} {reply.url}"))
        page.on(
            "requestfailed",
            lambda request: traffic.append(f"  failed {request.method} {request.url} {request.failure}"),
        )
        page.on("pageerror", lambda error: errors.append(f"script: {error}"))
        page.on(
            "console",
            lambda message: errors.append(f"policy: {message.text}") if "Content Security" in message.text else None,
        )

    yield open_page
    if request.node.stash.get(FAILED, False):
        print_diagnostics(contexts, traffic)
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def axe() -> Callable[..., list[str]]:
    """`axe(page)`: the violations that axe-core finds on the page, one line each. `only`: these
    rules, COLOURS or WIDTHS."""
    from axe_playwright_python.base import AXE_SCRIPT

    def check(page: Any, only: tuple[str, ...] | None = None) -> list[str]:
        if not page.evaluate("typeof axe === 'object'"):
            page.evaluate(AXE_SCRIPT)
        page.evaluate(MARK_SIMILAR_ROWS)
        violations = page.evaluate(RUN_AXE, [COLOURS, only])
        return [f"{row['id']}: {row['help']} {row['targets'][:5]}" for row in violations]

    return check
