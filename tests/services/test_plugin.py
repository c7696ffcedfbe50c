"""The plugin in a test run: each case runs a separate pytest on a small file."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

from tests.services.plugin import LONGEST, REASONS_VARIABLE, ROOT, SERVERS

TESTS = """
import pytest

def test_plain():
    assert 1 + 1 == 2

def test_database(postgres_url):
    assert False, "must not run without PostgreSQL"

@pytest.mark.server("redis")
def test_queue():
    assert True

@pytest.mark.server
def test_starts_its_own():
    assert True

@pytest.mark.browser
def test_page():
    assert True
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "empty.ini").write_text("[pytest]\n")

    def run(*arguments, **variables):
        excluded = {variable for variable, _ in SERVERS.values()} | {"CI", REASONS_VARIABLE, "PYTEST_XDIST_WORKER"}
        env = {k: v for k, v in os.environ.items() if k not in excluded and not k.startswith("PYTEST_")}
        # Only the plugins under test: loading all installed ones would take seconds each time.
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        command = [sys.executable, "-m", "pytest", "-p", "tests.services.plugin", "-p", "xdist.plugin"]
        command += ["-p", "no:cacheprovider", "-c", str(tmp_path / "empty.ini"), str(tmp_path), *arguments]
        return subprocess.run(
            command, cwd=settings.BASE_DIR, env=env | variables, capture_output=True, text=True, check=False
        )

    return run


def test_tests_with_missing_servers_are_skipped_with_reasons(run):
    reasons = json.dumps({"postgres": "initdb is not installed"})
    done = run("-m", "not browser", **{REASONS_VARIABLE: reasons})
    assert done.returncode == 0, done.stdout
    assert "2 passed, 2 skipped" in done.stdout
    assert "1 test skipped, no PostgreSQL: initdb is not installed" in done.stdout
    assert "1 test skipped, no Redis: TEST_REDIS_URL is not set" in done.stdout


def test_such_a_skip_fails_in_continuous_integration(run):
    assert run("-m", "not browser", CI="true").returncode == 1
    assert run("-k", "plain", CI="true").returncode == 0


def test_skips_are_reported_with_several_processes(run):
    done = run("-m", "not browser", "-n", "2", CI="true")
    assert done.returncode == 1
    assert "1 test skipped, no PostgreSQL" in done.stdout


def test_files_to_run_first_exist():
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []


def test_available_server_is_used(run):
    done = run("-k", "queue or page", CI="true", TEST_REDIS_URL="redis://127.0.0.1:1/0", CHROMIUM="/bin/true")
    assert done.returncode == 0
    assert "2 passed" in done.stdout


def test_needs_of_selected_tests_are_reported(run, tmp_path):
    def get_needed(*arguments):
        run("--collect-only", f"--servers-needed={tmp_path / 'needed.json'}", *arguments)
        return json.loads((tmp_path / "needed.json").read_text())

    assert get_needed() == ["chromium", "postgres", "redis"]
    assert get_needed("-m", "not server") == ["chromium"]
    assert get_needed("-k", "plain or own") == []


def test_unknown_server_is_an_error(run, tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS.replace('"redis"', '"reddis"'))
    done = run()
    assert done.returncode != 0
    assert "unknown servers: reddis" in done.stdout + done.stderr


@pytest.mark.server("postgres")
def test_each_test_has_its_own_empty_database(postgres_url):
    import psycopg2

    connection = psycopg2.connect(postgres_url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone()[0].startswith(f"t_{os.getpid()}_")
    connection.close()  # the fixture drops the database even if this is forgotten


@pytest.mark.parametrize("number", [1, 2])
def test_django_on_postgres_has_tables_and_threads_see_commits(postgres_db, number):
    """Runs twice with the same row: the second run would fail if the row of the first still existed."""
    from concurrent.futures import ThreadPoolExecutor

    from django.contrib.auth import get_user_model
    from django.db import connection, connections

    people = get_user_model().objects
    assert connection.vendor == "postgresql"
    assert people.count() == 0
    people.create_user("ada", password="x")

    def count() -> int:
        try:
            return people.count()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(count).result() == 1


@pytest.mark.django_db
@pytest.mark.server("postgres")
def test_django_connection_is_restored_afterwards():
    from django.contrib.auth import get_user_model
    from django.db import connection

    assert connection.vendor == "sqlite"
    assert get_user_model().objects.count() == 0


@pytest.mark.server("redis")
def test_each_test_has_its_own_empty_queue(redis_url):
    import redis

    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("left", "behind")
    assert not redis_url.endswith("/0")


@pytest.mark.browser
def test_browser_renders_a_page(chromium_path, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<title>x</title><p id=a></p><script>a.textContent = 6 * 7</script>")
    command = [chromium_path, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert '<p id="a">42</p>' in done.stdout


# ---- figures of promises ----------------------------------------------------------------------------------


def test_figures_of_promises_are_written_on_request(run, tmp_path):
    """Passed and failed tests and recorded values, also when processes share the tests."""
    (tmp_path / "test_shown.py").write_text(
        "import pytest\n"
        "pytestmark = pytest.mark.promise('one')\n"
        "@pytest.mark.promise('two')\n"
        "@pytest.mark.parametrize('n', [3, 4])\n"
        "def test_counts(n, record_property):\n"
        "    record_property('figure', f'{n} rows')\n"
        "def test_fails():\n"
        "    assert False\n"
    )
    for more in ([], ["-n", "2"]):
        path = tmp_path / "figures.json"
        path.unlink(missing_ok=True)
        done = run("-k", "counts or fails", *more, PROMISE_FIGURES=str(path))
        assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
        promises = json.loads(path.read_text())["promises"]
        counts = {name: (row["passed"], row["failed"]) for name, row in promises.items()}
        assert counts == {"one": (2, 1), "two": (2, 0)}
        assert promises["two"]["noted"] == {"test_counts[3]": "3 rows", "test_counts[4]": "4 rows"}
