"""What browser tests share: a real web process (gunicorn, production settings, a database of its own), a real
Chromium, people signed in, and axe. A test asks for `page_for` and signs somebody in; rows that it makes through the
models are seen by the web process. The database is a file; with BROWSER_DATABASE=postgres it is on PostgreSQL:

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
from tests.services.plugin import location

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_ARGUMENTS = ("--no-sandbox", "--disable-quic", "--disable-background-networking")
#: Of a machine that has other things to do; what is there sooner is not waited for.
START_SECONDS, PATIENCE = 180, 60_000  # the second in milliseconds, for everything that a page comes to show
# Contrast is what takes axe the time, text by text. Rows of a table or a list with the same elements, classes and place
# (first, last, even, odd) have the same colours: one of each look is checked, and everything else on every row. Only
# what is wrong crosses to this process: all that axe looked at is megabytes.
AXE_MARKS_ALIKE = """() => {
  const told = new Set(["href", "id", "name", "for", "value", "title", "datetime", "src", "alt", "aria-label"]);
  const look = (element) => [
    element.tagName,
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()),
    ...[...element.attributes].filter(({ name }) => !told.has(name)).map(({ name, value }) => `${name}=${value}`),
  ].join();
  for (const parent of document.querySelectorAll("tbody, ul, ol")) {
    const seen = new Set();
    [...parent.children].forEach((row, place, { length }) => {
      const looks = [row, ...row.querySelectorAll("*")].map(look);
      const whole = [...looks, place === 0, place === length - 1, place % 2].join("|");
      if (seen.has(whole)) row.dataset.alike = "";
      seen.add(whole);
    });
  }
}"""
AXE_FINDS = """async (colours) => {
  const rules = ["color-contrast", "link-in-text-block"];
  const resultTypes = ["violations"];
  const runs = [[{ exclude: [["[data-alike]"]] }, { resultTypes, runOnly: { type: "rule", values: rules } }]];
  const others = Object.fromEntries(rules.map((name) => [name, { enabled: false }]));
  if (!colours) runs.push([document, { resultTypes, rules: others }]);
  const found = [];
  for (const [context, options] of runs) found.push(...(await axe.run(context, options)).violations);
  return found.map(({ id, help, nodes }) => ({ id, help, targets: nodes.map((node) => node.target) }));
}"""
ON_POSTGRES = os.environ.get("BROWSER_DATABASE") == "postgres"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if ON_POSTGRES:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.server("postgres"))


@dataclass
class Site:
    """The running installation. `manage` runs a command in it; the web process can be killed and started again."""

    url: str
    folder: Path
    env: dict[str, str] = field(repr=False)
    database: str = ""
    web: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    #: Ends what it started even where this process is killed.
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
        """As a machine that loses power."""
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
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


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
    """With all tables."""
    from tests.services.plugin import _database

    if ON_POSTGRES:
        with _database("browser", request.getfixturevalue("_migrated_database")) as address:
            yield address
    else:
        shutil.copy(request.getfixturevalue("migrated_file"), folder / "evalapp.sqlite3")
        yield f"sqlite:///{folder / 'evalapp.sqlite3'}"


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One web process for all browser tests, also for those that come after tests of another kind."""
    folder = tmp_path_factory.mktemp("site")
    with new_database(request, folder) as database:
        yield from running_site(folder, database)


def queue(number: int) -> str:
    """A Redis database for the tests of one file; `redis_url` is one for a single test."""
    return urlunsplit(urlsplit(location("redis"))._replace(path=f"/{number}"))


def running_site(folder: Path, database: str, **env_of_it: str) -> Iterator[Site]:
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
        **env_of_it,
    }
    found = Site(f"http://127.0.0.1:{port}", folder, env, database)
    found.manage("collectstatic", "--noinput", "-v0")
    try:
        found.start()
        yield found
    finally:
        found.stop()
        found.family.close()


def empty_tables() -> None:
    """Deletes every row but those that `migrate` made. What the command `flush` does beside it, making these anew and
    deleting from tables that are empty, takes most of a second."""
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
    """The rows of the web process, all gone at first. In place of the test database of other tests."""
    from tests.services.plugin import _django_on

    # Playwright keeps an event loop in this thread, which Django would take for asynchronous code.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with django_db_blocker.unblock(), _django_on(site.database):
        empty_tables()
        yield


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Any]:
    """One Chromium for the tests of a file. Not longer: Playwright keeps an event loop in this thread, and while it
    is there Django takes every other test of this process for asynchronous code."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium_path, args=list(CHROMIUM_ARGUMENTS))
        yield found
        found.close()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fixtures learn whether the test failed, so that they can tell what the pages showed."""
    report: Any = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


def tell(contexts: list[Any], traffic: list[str]) -> None:
    """What every open page shows and keeps, and what was asked of the server, beside the report of a failure."""
    for page in [page for context in contexts for page in context.pages]:
        print(f"--- {page.url} ({page.title()})")
        with contextlib.suppress(Exception):
            print(page.inner_text("body")[:1500])
            print("kept:", page.evaluate("() => JSON.stringify(localStorage)")[:1500])
    print("--- asked:", *traffic[-40:], sep="\n")


@pytest.fixture
def page_for(browser: Any, site: Site, db: None, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """`page_for(user, width=, height=, scheme=)`: a page of a new browser window in which `user` is signed in
    (None: nobody). Paths are relative to the site. Errors of scripts and of the security policy fail the test."""
    from django.test import Client

    contexts: list[Any] = []
    troubles: list[str] = []
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
        context.set_default_timeout(PATIENCE)
        if user is not None:
            client = Client()
            client.force_login(user)
            cookie = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": site.url}])
        context.on("page", watch)
        return context.new_page()

    def watch(page: Any) -> None:
        page.on("request", lambda asked: traffic.append(f"{asked.method} {asked.url}"))
        page.on("response", lambda found: traffic.append(f"  {found.status} {found.request.method} {found.url}"))
        page.on("requestfailed", lambda asked: traffic.append(f"  failed {asked.method} {asked.url} {asked.failure}"))
        page.on("pageerror", lambda error: troubles.append(f"script: {error}"))
        page.on(
            "console",
            lambda message: troubles.append(f"policy: {message.text}") if "Content Security" in message.text else None,
        )

    yield open_page
    if request.node.stash.get(FAILED, False):
        tell(contexts, traffic)
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture
def axe() -> Callable[..., list[str]]:
    """`axe(page)`: what axe-core finds wrong on it, one line each; an empty list is good. `colours`: only what can
    differ between light and dark."""
    from axe_playwright_python.base import AXE_SCRIPT

    def check(page: Any, *, colours: bool = False) -> list[str]:
        if not page.evaluate("typeof axe === 'object'"):
            page.evaluate(AXE_SCRIPT)
        page.evaluate(AXE_MARKS_ALIKE)
        found = page.evaluate(AXE_FINDS, colours)
        return [f"{row['id']}: {row['help']} {row['targets'][:5]}" for row in found]

    return check
