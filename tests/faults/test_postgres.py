"""The database is restarted, and connections are cut during transactions: there are no partial changes, web and worker
continue in the same processes, and users see a one-line message. The module starts its own server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from annotation.models import Assignment, Item, Judgement, Output, Rating, Slot, Upload
from annotation.services.uploads import Incoming, receive_upload
from evalapp.accounts.services.tokens import create_token
from evalapp.common.models import AuditEvent, Run, RunLog
from evalapp.common.queue import enqueue_run, retry_run
from evalapp.ops.processes import Family
from tests.annotation.services.judging_helpers import answer_to, open_for
from tests.cast import Cast, make_cast
from tests.evalapp.common import run_jobs  # noqa: F401 - registers the kinds of job
from tests.evalapp.common.conftest import wait_until
from tests.faults.stack import Stack
from tests.faults.test_supervisor import list_family
from tests.faults.timed_requests import BUSY_MACHINE_SECONDS, MAX_WAIT_SECONDS, Response, request_over_http
from tests.services import installing, servers
from tests.services.installing import ServerUnavailable
from tests.services.plugin import get_address
from tests.taking import COMPARISONS, DATASET, ITEMS, OUTPUTS, RATINGS, as_bytes

pytestmark = [pytest.mark.server("postgres"), pytest.mark.slow, pytest.mark.promise("database")]
WORKER = ["--include", "tests.evalapp.common.run_jobs", "--queues", "cpu,gpu,live"]
SECONDS = 6  # the timeout of requests in this installation
MESSAGE = "The database does not answer."


class Installation:
    """An installation with its own database server."""

    def __init__(self, family: Family, folder: Path, url: str) -> None:
        self.family, self.folder, self.url = family, folder, url
        self.stack: Stack
        self.cast: Cast
        self.token = ""

    @contextmanager
    def without_database(self) -> Iterator[None]:
        connection.close()
        (child,) = self.family.children
        self.family.end([child])
        try:
            yield
        finally:
            url = servers.start_postgres(self.family, self.folder / "postgres")
        assert url == self.url.rpartition("/")[0] + "/postgres"

    @contextmanager
    def with_frozen_database(self) -> Iterator[None]:
        """Freeze all processes of the server; connections stay open, because the kernel still acknowledges data."""
        (child,) = self.family.children
        processes = sorted(pid for pid, _ in list_family(child.pid))
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)

    def get(self, path: str) -> Response:
        return request_over_http(self.stack.url + path, token=self.token)

    def post(self, path: str, body: Any = None) -> Response:
        return request_over_http(self.stack.url + path, body or {}, token=self.token)

    def run(self, **params: Any) -> Run:
        return enqueue_run(kind="test-count", project=self.cast.project, params=params, title="Count")


def copy_tables(name: str, target: str) -> None:
    """Copy the tables of the database `name` of the shared server to `target`, which is faster than migrating."""
    binaries = installing.postgres_binaries()
    source = get_address("postgres").rpartition("/")[0] + f"/{name}"
    dump = subprocess.run(
        [binaries / "pg_dump", "--no-owner", source.replace("postgres://", "postgresql://")],
        capture_output=True,
        check=True,
    )
    command = [binaries / "psql", "-q", "-v", "ON_ERROR_STOP=1", target.replace("postgres://", "postgresql://")]
    subprocess.run(command, input=dump.stdout, stdout=subprocess.DEVNULL, check=True)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: Any, _migrated_database: str, django_db_blocker: Any) -> Iterator[Installation]:
    folder = Path(tempfile.mkdtemp(prefix="evalapp-postgres-"))
    folder.chmod(0o755)  # so that the account of the server can enter it
    try:
        with Family() as family:
            try:
                url = servers.start("postgres", family, folder)
            except ServerUnavailable as error:
                pytest.skip(f"a separate PostgreSQL server is unavailable: {error}")
            copy_tables(_migrated_database, url)
            installation = Installation(family, folder, url)
            data = tmp_path_factory.mktemp("postgres") / "data"
            env = {"DATABASE_TIMEOUT": str(SECONDS)}
            with (
                Stack(data, database_url=url, env=env) as installation.stack,
                django_db_blocker.unblock(),
                installation.stack.django(),
            ):
                installation.cast = make_cast()
                installation.token = create_token(
                    user=installation.cast.annotator, name="t", scopes=["read", "annotate"]
                )[1]
                installation.stack.start("redis", "web")
                installation.stack.start("work", more=WORKER)
                yield installation
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def cut_connections(table: str, event: str, condition: str = "true", times: int = 1) -> Iterator[None]:
    """Let the server terminate the first connections that execute such a statement, during their transactions. They are
    counted by a sequence, which is not rolled back."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            CREATE SEQUENCE cuts;
            CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
              IF {condition} THEN
                IF nextval('cuts') <= {times} THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
              END IF;
              RETURN NULL;
            END $$;
            CREATE TRIGGER cut AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION cut();
            """
        )
    try:
        yield
        with connection.cursor() as cursor:
            cursor.execute("SELECT last_value, is_called FROM cuts")
            assert cursor.fetchone() >= (times, True)  # the connections were cut
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER cut ON {table}; DROP FUNCTION cut; DROP SEQUENCE cuts")


def read_state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def wait_for(run: Run) -> None:
    wait_until(lambda: read_state(run) not in Run.ACTIVE, 300)
    assert run.state == Run.State.SUCCEEDED, run.error


def test_database_restarts_during_requests_and_runs(installation):
    pids = installation.stack.pid("web"), installation.stack.pid("work")
    assert installation.get("/api/v1/projects/").status == 200
    assert request_over_http(f"{installation.stack.url}/account/sign-in/").status == 200
    run = installation.run(steps=100, pause=0.05)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 0)
    with installation.without_database():
        page = request_over_http(f"{installation.stack.url}/projects/alpha/", cookie=f"sessionid={'x' * 32}")
        assert (page.status, page.in_time, page.headers["Retry-After"]) == (503, True, "5")
        assert MESSAGE in page.text
        api = installation.get("/api/v1/projects/")
        assert (api.status, api.in_time) == (503, True)
        assert api.headers["Content-Type"] == "application/problem+json"
        assert api.json["type"].endswith("#unavailable")
        assert "does not answer" in api.json["detail"]
        assert installation.get("/health/live").status == 200
        assert installation.get("/health/ready").status == 503
        done = installation.stack.manage("runs", "alpha")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert "does not answer" in done.stderr
        log = installation.stack.log("web")
        assert "Traceback" not in log, log
    assert installation.get("/api/v1/projects/").status == 200
    wait_for(run)  # the heartbeat of the busy worker continued, so no attempt was lost
    assert run.attempt == 1
    following = installation.run(steps=2)
    wait_for(following)
    assert (installation.stack.pid("web"), installation.stack.pid("work")) == pids
    assert installation.stack.alive("web")
    assert installation.stack.alive("work")


def test_frozen_database_delays_no_request_and_costs_no_attempt(installation):
    def send_request(_: int) -> Response:
        return installation.get("/api/v1/projects/")

    run = installation.run(steps=60, pause=0.05)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 0)
    with ThreadPoolExecutor(8) as pool:
        assert {response.status for response in pool.map(send_request, range(24))} == {
            200
        }  # every thread has a connection
        with installation.with_frozen_database():
            ready = [installation.get("/health/ready") for _ in range(2)]
            responses = list(pool.map(send_request, range(4)))
            page = request_over_http(f"{installation.stack.url}/projects/alpha/", cookie=f"sessionid={'x' * 32}")
    assert {response.status for response in (*ready, *responses, page)} == {503}
    assert max(response.seconds for response in ready) < 4, "longer than the timeout of the check in docker-compose.yml"
    assert installation.get("/health/ready").json["database"], "the result was cached"
    assert all("does not answer" in response.json["detail"] for response in responses)
    assert MESSAGE in page.text
    # At most the timeout of an existing connection, then that of a new one.
    assert (
        max(response.seconds for response in (*responses, page)) < SECONDS + 2 * MAX_WAIT_SECONDS + BUSY_MACHINE_SECONDS
    )
    log = installation.stack.log("web")
    assert "has been silent for" in log
    assert "Traceback" not in log, log
    assert installation.get("/api/v1/projects/").status == 200
    wait_for(run)  # workers wait and lose no attempt
    assert (run.result, run.attempt) == ({"counted": 60, "attempt": 1}, 1)


def test_connection_cut_during_a_submission_stores_nothing_and_a_repeat_once(installation):
    campaign = open_for(installation.cast)
    task = installation.post(f"/api/v1/campaigns/{campaign.pk}/next/").json
    body = {"submission": str(uuid4()), "answer": answer_to(campaign), "next": True}
    address = f"/api/v1/assignments/{task['id']}/submit/"
    before = AuditEvent.objects.count()
    # The next assignment is created in the transaction that has just stored the answer.
    with cut_connections("annotation_assignment", "INSERT"):
        lost = installation.post(address, body)
        assert (lost.status, lost.in_time) == (503, True)
        assert lost.json["type"].endswith("#unavailable")
        assert Judgement.objects.count() == 0
        assert Slot.objects.filter(campaign=campaign, state=Slot.State.TAKEN).count() == 1
        assert Assignment.objects.get(public=task["id"]).state == Assignment.State.OPEN
        assert AuditEvent.objects.count() == before
        again = installation.post(address, body)
        assert again.status == 200, again.text
    assert installation.post(address, body).status == 200
    assert Judgement.objects.count() == 1
    assert Assignment.objects.get(public=task["id"]).state == Assignment.State.SUBMITTED


def test_connection_cut_during_an_import_stores_all_or_nothing(installation):
    files = {
        "dataset.json": DATASET, "items.jsonl": ITEMS, "outputs.jsonl": OUTPUTS, "ratings.jsonl": RATINGS,
        "comparisons.jsonl": COMPARISONS,
    }  # fmt: skip
    project = installation.cast.foreign

    def rows() -> list[int]:
        return [model.objects.filter(project=project).count() for model in (Item, Output, Rating)]

    with cut_connections("annotation_rating", "INSERT", times=3):
        upload = receive_upload(
            project=project,
            user=installation.cast.stranger,
            files=[Incoming(n, [as_bytes(c)]) for n, c in files.items()],
        )
        wait_until(lambda: read_state(upload.run) not in Run.ACTIVE, 300)
        assert (upload.run.state, upload.run.attempt) == (Run.State.FAILED, 3)
        assert "3 times" in upload.run.error
        assert RunLog.objects.filter(run=upload.run, text__contains="goes back to the queue").count() == 2
        assert rows() == [0, 0, 0]
        retry_run(run=upload.run, user=installation.cast.stranger)
        wait_for(upload.run)
    upload.refresh_from_db()
    assert upload.state == Upload.State.DONE
    assert rows() == [len(ITEMS), len(OUTPUTS), len(RATINGS)]
    assert AuditEvent.objects.filter(project=project, verb="upload.done").count() == 1


def test_connection_cut_at_start_or_end_leaves_no_run_unfinished(installation):
    claimed = "NEW.state = 'running' AND OLD.state = 'queued'"
    with cut_connections("common_run", "UPDATE", claimed):
        run = installation.run(steps=3)
        wait_for(run)
    assert run.result == {"counted": 3, "attempt": run.attempt}
    with cut_connections("common_run", "UPDATE", "NEW.state = 'succeeded'"):
        run = installation.run(steps=4)
        wait_for(run)
    assert run.result == {"counted": 4, "attempt": 1}
    assert installation.stack.end("work", signal.SIGTERM) == 0
