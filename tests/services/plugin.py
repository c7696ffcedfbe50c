"""Provides tests with servers on request: `@pytest.mark.server("postgres", "redis", "elasticsearch")`,
`@pytest.mark.browser`, or one of the fixtures here, which set the marker themselves. A test whose server is missing is
skipped, and the last lines give the reason; with CI=true such a skip fails the run."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

# Available servers: name -> (variable with the address, display name).
SERVERS = {
    "postgres": ("TEST_DATABASE_URL", "PostgreSQL"),
    "redis": ("TEST_REDIS_URL", "Redis"),
    "elasticsearch": ("TEST_ELASTICSEARCH_URL", "Elasticsearch"),
    "chromium": ("CHROMIUM", "Chromium"),
}
_FIXTURES = {
    "postgres_url": "postgres",
    "postgres_db": "postgres",
    "migrated_url": "postgres",
    "redis_url": "redis",
    "elasticsearch_url": "elasticsearch",
    "chromium_path": "chromium",
}
# Why a server is unavailable, as {"name": "reason"}; written by `tests/services/run.py`.
REASONS_VARIABLE = "TEST_SERVERS_MISSING"
_PROPERTY = "missing-server"
# Where a run writes the figures of docs/promises.md: tests and seconds of each promise, and values recorded by
# `record_property("figure", "...")`.
FIGURES_VARIABLE = "PROMISE_FIGURES"
_LONG = ("slow", "browser", "server")
# The files that take half a minute or more, longest first; waiting and computing files alternate.
LONGEST = (
    "tests/faults/test_jobs.py",
    "tests/browser/test_pages.py",
    "tests/faults/test_jobs_at_random.py",
    "tests/flows/test_training.py",
    "tests/browser/test_evaluators.py",
    "tests/flows/test_clumsy.py",
    "tests/security/test_slow_bodies.py",
    "tests/architecture/test_permissions.py",
    "tests/scoring/pipelines/test_judge.py",
    "tests/browser/test_offline.py",
    "tests/docs/test_blocks.py",
    "tests/annotation/pipelines/test_bombs.py",
    "tests/browser/test_writing.py",
    "tests/scoring/ml/evaluators/comparative/test_comparative.py",
    "tests/browser/test_judging.py",
    "tests/scoring/pipelines/test_failed_figures.py",
    "tests/faults/test_crowd.py",
    "tests/faults/test_migrations.py",
    "tests/flows/test_floors.py",
    "tests/scoring/live/test_several.py",
    "tests/scoring/ml/test_scripts.py",
    "tests/retrieval/index/test_elastic_restart.py",
    "tests/security/test_openapi.py",
    "tests/browser/test_campaigns.py",
    "tests/scoring/ml/training/test_several.py",
    "tests/scoring/live/test_workers.py",
    "tests/evalapp/management/commands/test_damaged.py",
    "tests/evalapp/management/commands/test_up.py",
    "tests/annotation/management/commands/test_load.py",
    "tests/faults/test_supervisor.py",
    "tests/retrieval/index/test_elastic.py",
    "tests/browser/test_corrections.py",
    "tests/evalapp/test_installed.py",
    "tests/browser/test_newcomers_sheet.py",
    "tests/annotation/exporters/test_memory.py",
    "tests/security/test_walks.py",
    "tests/browser/test_participants.py",
    "tests/scoring/pipelines/test_side_figures.py",
    "tests/scoring/ml/evaluators/perception/test_evaluator.py",
    "tests/evalapp/common/test_tasks.py",
    "tests/scoring/pipelines/test_train.py",
    "tests/faults/test_postgres.py",
    "tests/evalapp/client/test_callback.py",
    "tests/browser/test_narrow.py",
)
# A run with at least this number of files lists its longest ones, up to this number.
FILES_OF_A_LONG_RUN, LONGEST_SHOWN = 100, 60
ROOT = Path(__file__).resolve().parents[2]
_CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


# ---- requirements of tests --------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--servers-needed",
        metavar="FILE",
        help="write the servers that the selected tests need to FILE, as a JSON list",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "server(*names): needs real servers: " + ", ".join(SERVERS))
    config.addinivalue_line("markers", "browser: drives a real Chromium")


def pytest_itemcollected(item: pytest.Item) -> None:
    for fixture in getattr(item, "fixturenames", ()):
        name = _FIXTURES.get(fixture)
        if name == "chromium":
            item.add_marker(pytest.mark.browser)
        elif name:
            item.add_marker(pytest.mark.server(name))
    item.user_properties.extend(("promise", name) for marker in item.iter_markers("promise") for name in marker.args)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several processes, run the longest files first and then the other slow ones, so that no long file remains at
    the end.

    Ids with the address of an object are refused: they differ between processes, which must collect the same tests.
    """
    if addressed := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"Give these tests ids without addresses (ids=...): {', '.join(addressed[:3])}")
    if not hasattr(config, "workerinput"):
        return
    long = {item.path for item in items if any(map(item.get_closest_marker, _LONG))}
    longest = {ROOT / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (longest.get(item.path, len(longest)), item.path not in long))


def get_needed_servers(item: pytest.Item) -> set[str]:
    """Return the servers that the test requires. `server` without a name marks a test that starts its own servers."""
    names = {name for marker in item.iter_markers("server") for name in marker.args}
    if item.get_closest_marker("browser"):
        names.add("chromium")
    unknown = names - set(SERVERS)
    if unknown:
        raise pytest.UsageError(f"{item.nodeid} asks for unknown servers: {', '.join(sorted(unknown))}")
    return names


def pytest_collection_finish(session: pytest.Session) -> None:
    path = session.config.getoption("--servers-needed")
    if path:
        names = sorted({name for item in session.items for name in get_needed_servers(item)})
        Path(path).write_text(json.dumps(names))


# ---- available servers ------------------------------------------------------------------------------------


def get_address(name: str) -> str:
    """Return the address of the server; empty if there is none."""
    value = os.environ.get(SERVERS[name][0], "")
    if name == "chromium" and not value:
        value = next((path for program in _CHROMIUM_NAMES if (path := shutil.which(program))), "")
    return value


def get_reason(name: str) -> str:
    """Return the reason why there is no such server."""
    reasons = json.loads(os.environ.get(REASONS_VARIABLE) or "{}")
    variable, _ = SERVERS[name]
    return reasons.get(name) or f"{variable} is not set; `make test` starts what is needed"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    missing = sorted(name for name in get_needed_servers(item) if not get_address(name))
    if missing:
        item.user_properties.extend((_PROPERTY, name) for name in missing)
        pytest.skip("; ".join(f"no {SERVERS[name][1]}: {get_reason(name)}" for name in missing))


# ---- summary at the end ---------------------------------------------------------------------------------------


def _skipped_for_servers(reporter: pytest.TerminalReporter) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for report in reporter.stats.get("skipped", []):
        for key, value in getattr(report, "user_properties", ()):
            if key == _PROPERTY:
                counts[value] += 1
    return dict(counts)


def is_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if is_ci() and exitstatus == pytest.ExitCode.OK and reporter and _skipped_for_servers(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def collect_promise_figures(reports: Iterable[pytest.TestReport]) -> dict[str, dict[str, Any]]:
    """Return for each promise the numbers of passed and failed tests, their seconds, and recorded values by test."""
    rows: dict[str, dict[str, Any]] = {}
    for report in reports:
        properties = dict.fromkeys((str(key), str(value)) for key, value in report.user_properties)
        for name in [value for key, value in properties if key == "promise"]:
            row = rows.setdefault(name, {"passed": 0, "failed": 0, "seconds": 0.0, "noted": {}})
            row["seconds"] = round(row["seconds"] + report.duration, 1)
            row["failed"] += report.failed
            if report.when == "call" and report.passed:
                row["passed"] += 1
                noted = [value for key, value in properties if key == "figure"]
                if noted:
                    row["noted"][report.nodeid.rpartition("::")[2]] = "; ".join(noted)
    return {name: rows[name] for name in sorted(rows)}


def _write_figures(reporter: pytest.TerminalReporter) -> None:
    if not (path := os.environ.get(FIGURES_VARIABLE)):
        return
    reports = [row for rows in reporter.stats.values() for row in rows if isinstance(row, pytest.TestReport)]
    figures = {"date": datetime.now(UTC).date().isoformat(), "promises": collect_promise_figures(reports)}
    Path(path).write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _sum_seconds_by_file(reporter: pytest.TerminalReporter) -> list[tuple[float, str, int]]:
    """Return (seconds, file, number of tests) of all files, including fixtures, longest first."""
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, int] = defaultdict(int)
    for reports in reporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                seconds[file] += report.duration
                tests[file] += report.when == "call"
    return sorted(((took, file, tests[file]) for file, took in seconds.items()), reverse=True)


def _write_longest_files(terminalreporter: pytest.TerminalReporter) -> None:
    """List the longest files of a large run."""
    files = _sum_seconds_by_file(terminalreporter)
    if len(files) < FILES_OF_A_LONG_RUN:
        return
    terminalreporter.section("longest files")
    for took, file, tests in files[:LONGEST_SHOWN]:
        terminalreporter.write_line(f"{took:7.1f} s  {tests:4d} tests  {file}")
    terminalreporter.write_line(f"{sum(took for took, _, _ in files):7.1f} s  in {len(files)} files")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    _write_longest_files(terminalreporter)
    _write_figures(terminalreporter)
    counts = _skipped_for_servers(terminalreporter)
    if not counts:
        return
    terminalreporter.section("tests without their server", sep="=", red=is_ci(), yellow=not is_ci())
    for name, count in sorted(counts.items()):
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(f"{tests} skipped, no {SERVERS[name][1]}: {get_reason(name)}")
    if is_ci():
        terminalreporter.write_line("CI=true: a skip for a missing server fails the run")


# ---- fixtures ---------------------------------------------------------------------------------------------


def _execute_on_server(*statements: Any) -> None:
    import psycopg2

    connection = psycopg2.connect(get_address("postgres"))
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    finally:
        connection.close()


def _create(name: str, template: str = "template1") -> str:
    """Create a database on the test server; return its address."""
    from psycopg2 import sql

    _drop(name)
    _execute_on_server(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))
    return urlunsplit(urlsplit(get_address("postgres"))._replace(path=f"/{name}"))


def _drop(name: str) -> None:
    from psycopg2 import sql

    _execute_on_server(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def create_temporary_database(name: str, template: str = "template1") -> Iterator[str]:
    """Yield the address of a new database, which is dropped at the end of the block."""
    name = re.sub(r"\W+", "_", f"t_{os.getpid()}_{name}".lower())[:60]
    try:
        yield _create(name, template)
    finally:
        _drop(name)


@contextmanager
def use_database(url: str) -> Iterator[None]:
    """Connect Django to this database, in this thread and in threads started within the block."""
    import dj_database_url
    from django.db import connections

    usual, before = connections["default"], connections.settings["default"]
    connections.settings["default"] = connections.configure_settings({"default": dict(dj_database_url.parse(url))})[
        "default"
    ]
    del connections["default"]
    try:
        yield
    finally:
        connections["default"].close()
        connections.settings["default"] = before
        connections["default"] = usual


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A new, empty PostgreSQL database for this test; dropped afterwards."""
    with create_temporary_database(request.node.name) as url:
        yield url


@pytest.fixture(scope="session")
def _common_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder shared by all processes of the run."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if hasattr(request.config, "workerinput") else folder


@contextmanager
def _exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold a lock that excludes the other processes of the run."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _migrate(url: str) -> None:
    """Run `migrate` in a separate process, because migrations are disabled in this one (`--nomigrations`)."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "evalapp.settings.test", "DATABASE_URL": url}
    command = [sys.executable, "manage.py", "migrate", "--no-input", "-v0"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def migrated_file(_common_folder: Path) -> Path:
    """A SQLite file with all tables, to be copied. Migrating takes ten seconds, so one process does it for the run."""
    path = _common_folder / "migrated.sqlite3"
    with _exclusive_lock(_common_folder):
        if not path.exists():
            draft = path.with_suffix(".new")
            draft.unlink(missing_ok=True)
            _migrate(f"sqlite:///{draft}")
            draft.rename(path)
    return path


@pytest.fixture(scope="session")
def collected_static(_common_folder: Path) -> Path:
    """The folder of static files as `collectstatic` leaves it for production, to be copied into a data folder."""
    data = _common_folder / "collected"
    with _exclusive_lock(_common_folder):
        if not data.exists():
            draft = data.with_suffix(".new")
            env = {**os.environ, "DJANGO_SETTINGS_MODULE": "evalapp.settings.base", "EVALAPP_DATA": str(draft)}
            command = [sys.executable, "manage.py", "collectstatic", "--no-input", "-v0"]
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            draft.rename(data)
    return data / "static"


@pytest.fixture(scope="session")
def _migrated_database(_common_folder: Path) -> Iterator[str]:
    """The name of a database with all tables, to be copied by all processes of the run; the last one drops it."""
    name = f"t_migrated_{hashlib.sha256(str(_common_folder).encode()).hexdigest()[:16]}"
    users = _common_folder / "users-of-migrated"
    with _exclusive_lock(_common_folder):
        count = int(users.read_text()) if users.exists() else 0
        if not count:
            _migrate(_create(name))
        users.write_text(str(count + 1))
    yield name
    with _exclusive_lock(_common_folder):
        count = int(users.read_text()) - 1
        users.write_text(str(count))
        if not count:
            _drop(name)


@pytest.fixture
def migrated_url(request: pytest.FixtureRequest, _migrated_database: str) -> Iterator[str]:
    """A new PostgreSQL database with all tables, for other processes; Django in this process is not connected to it."""
    with create_temporary_database(request.node.name, _migrated_database) as url:
        yield url


@pytest.fixture
def postgres_db(migrated_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Django connected to a new PostgreSQL database with all tables; yields its address. Writes are committed, so
    threads and other processes (with DATABASE_URL) see them. Use it instead of the `db` fixture, not together with
    it."""
    with django_db_blocker.unblock(), use_database(migrated_url):
        yield migrated_url


@pytest.fixture(scope="session")
def demo_files(_common_folder: Path) -> Path:
    """The folder with the data of the demonstration. Building takes ten seconds and is done once for all processes of
    the run; tests only read it."""
    from evalapp.demo.build import build

    path = _common_folder / "demo"
    with _exclusive_lock(_common_folder):
        if not path.exists():
            build(path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)
    return path


@pytest.fixture
def written_demo(demo_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command `demo` use these files instead of building them again."""
    monkeypatch.setattr(
        "evalapp.demo.build.build", lambda folder: shutil.copytree(demo_files, folder, dirs_exist_ok=True)
    )


@contextmanager
def empty_redis() -> Iterator[str]:
    """Yield the address of an empty Redis database that no other test process uses."""
    import redis

    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    url = urlunsplit(urlsplit(get_address("redis"))._replace(path=f"/{int(worker) + 1}"))
    client = redis.Redis.from_url(url)
    client.flushdb()
    try:
        yield url
    finally:
        client.flushdb()
        client.close()


@pytest.fixture
def redis_url() -> Iterator[str]:
    """`empty_redis` for one test."""
    with empty_redis() as url:
        yield url


@pytest.fixture(scope="session")
def elasticsearch_url() -> str:
    """The address of the test server. Tests use distinct index names and delete their indexes."""
    return get_address("elasticsearch")


@pytest.fixture
def elasticsearch_alone() -> None:
    """For a test that makes the server appear unhealthy: no other process of the run uses it at the same time."""


@pytest.fixture(autouse=True)
def _elasticsearch_in_turn(request: pytest.FixtureRequest) -> Iterator[None]:
    names = request.fixturenames
    if "elasticsearch_url" not in names:
        yield
        return
    folder: Path = request.getfixturevalue("_common_folder")
    with (folder / "elasticsearch").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if "elasticsearch_alone" in names else fcntl.LOCK_SH)
        yield


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The path of the browser."""
    return get_address("chromium")


@pytest.fixture(scope="session")
def shared_data(pytestconfig: pytest.Config) -> Path:
    """The real human-rated data sets: EVALAPP_SHARED_DATA, else `../shared/data` next to the checkout."""
    named = os.environ.get("EVALAPP_SHARED_DATA")
    folder = Path(named) if named else pytestconfig.rootpath.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not in {folder}; set EVALAPP_SHARED_DATA to their folder")
    return folder
