"""The database is restarted, and connections are cut in the middle of transactions: nothing is half done, web and
worker continue in the same processes, people read one line. The file starts its own server once."""

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
from tests.faults.asking import BUSY, PATIENCE, Answer, over_http
from tests.faults.stack import Stack
from tests.faults.test_supervisor import list_family
from tests.services import installing, servers
from tests.services.installing import CannotHave
from tests.services.plugin import location
from tests.taking import COMPARISONS, DATASET, ITEMS, OUTPUTS, RATINGS, as_bytes

pytestmark = [pytest.mark.server("postgres"), pytest.mark.slow, pytest.mark.promise("database")]
WORKER = ["--include", "tests.evalapp.common.run_jobs", "--queues", "cpu,gpu,live"]
SECONDS = 6  # how long a page may wait here
LINE = "The database does not answer."


class House:
    """`postgres`: the database server's own folder and process."""

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
            again = servers.start_postgres(self.family, self.folder / "postgres")
        assert again == self.url.rpartition("/")[0] + "/postgres"

    @contextmanager
    def without_an_answer(self) -> Iterator[None]:
        """Freezes every process of the server; its connections stay open, since the kernel still acknowledges data."""
        (child,) = self.family.children
        processes = sorted(pid for pid, _ in list_family(child.pid))
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)

    def get(self, path: str) -> Answer:
        return over_http(self.stack.url + path, token=self.token)

    def post(self, path: str, body: Any = None) -> Answer:
        return over_http(self.stack.url + path, body or {}, token=self.token)

    def run(self, **params: Any) -> Run:
        return enqueue_run(kind="test-count", project=self.cast.project, params=params, title="Count")


def copy_tables(name: str, target: str) -> None:
    """Copies the tables of the database `name` of the shared server into `target`; faster than migrating."""
    binaries = installing.postgres_binaries()
    source = location("postgres").rpartition("/")[0] + f"/{name}"
    dump = subprocess.run(
        [binaries / "pg_dump", "--no-owner", source.replace("postgres://", "postgresql://")],
        capture_output=True,
        check=True,
    )
    filled = [binaries / "psql", "-q", "-v", "ON_ERROR_STOP=1", target.replace("postgres://", "postgresql://")]
    subprocess.run(filled, input=dump.stdout, stdout=subprocess.DEVNULL, check=True)


@pytest.fixture(scope="module")
def house(tmp_path_factory: Any, _migrated_database: str, django_db_blocker: Any) -> Iterator[House]:
    folder = Path(tempfile.mkdtemp(prefix="evalapp-postgres-"))
    folder.chmod(0o755)  # restored by the server's own user
    try:
        with Family() as family:
            try:
                url = servers.start("postgres", family, folder)
            except CannotHave as error:
                pytest.skip(f"no PostgreSQL of its own: {error}")
            copy_tables(_migrated_database, url)
            made = House(family, folder, url)
            place = tmp_path_factory.mktemp("postgres") / "data"
            env = {"DATABASE_TIMEOUT": str(SECONDS)}
            with (
                Stack(place, database_url=url, env=env) as made.stack,
                django_db_blocker.unblock(),
                made.stack.django(),
            ):
                made.cast = make_cast()
                made.token = create_token(user=made.cast.annotator, name="t", scopes=["read", "annotate"])[1]
                made.stack.start("redis", "web")
                made.stack.start("work", more=WORKER)
                yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def cut(table: str, event: str, condition: str = "true", times: int = 1) -> Iterator[None]:
    """Makes the server end the first connections that do this, in the middle of their transactions. A sequence counts
    them, because it is not rolled back."""
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
            assert cursor.fetchone() >= (times, True)  # the cuts were made
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER cut ON {table}; DROP FUNCTION cut; DROP SEQUENCE cuts")


def read_state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def wait_for(run: Run) -> None:
    wait_until(lambda: read_state(run) not in Run.ACTIVE, 60)
    assert run.state == Run.State.SUCCEEDED, run.error


def test_server_restarts_under_people_and_workers(house):
    pids = house.stack.pid("web"), house.stack.pid("work")
    assert house.get("/api/v1/projects/").status == 200
    assert over_http(f"{house.stack.url}/account/sign-in/").status == 200
    run = house.run(steps=100, pause=0.05)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 0)
    with house.without_database():
        page = over_http(f"{house.stack.url}/projects/alpha/", cookie=f"sessionid={'x' * 32}")
        assert (page.status, page.in_time, page.headers["Retry-After"]) == (503, True, "5")
        assert LINE in page.text
        api = house.get("/api/v1/projects/")
        assert (api.status, api.in_time) == (503, True)
        assert api.headers["Content-Type"] == "application/problem+json"
        assert api.json["type"].endswith("#unavailable")
        assert "does not answer" in api.json["detail"]
        assert house.get("/health/live").status == 200
        assert house.get("/health/ready").status == 503
        done = house.stack.manage("runs", "alpha")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert "does not answer" in done.stderr
        log = house.stack.log("web")
        assert "Traceback" not in log, log
    assert house.get("/api/v1/projects/").status == 200
    wait_for(run)  # the worker that was busy: its heartbeat continued, it lost no attempt
    assert run.attempt == 1
    following = house.run(steps=2)
    wait_for(following)
    assert (house.stack.pid("web"), house.stack.pid("work")) == pids
    assert house.stack.alive("web")
    assert house.stack.alive("work")


def test_frozen_server_keeps_nobody_waiting_and_costs_runs_nothing(house):
    def ask(_: int) -> Answer:
        return house.get("/api/v1/projects/")

    run = house.run(steps=60, pause=0.05)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 0)
    with ThreadPoolExecutor(8) as people:
        assert {answer.status for answer in people.map(ask, range(24))} == {200}  # every thread has a connection
        with house.without_an_answer():
            ready = [house.get("/health/ready") for _ in range(2)]
            answers = list(people.map(ask, range(4)))
            page = over_http(f"{house.stack.url}/projects/alpha/", cookie=f"sessionid={'x' * 32}")
    assert {answer.status for answer in (*ready, *answers, page)} == {503}
    assert max(answer.seconds for answer in ready) < 4, "docker-compose.yml waits no longer for it"
    assert house.get("/health/ready").json["database"], "asked anew"
    assert all("does not answer" in answer.json["detail"] for answer in answers)
    assert LINE in page.text
    # At most one request on the connection of an earlier one, then one that opens a new one.
    assert max(answer.seconds for answer in (*answers, page)) < SECONDS + 2 * PATIENCE + BUSY
    log = house.stack.log("web")
    assert "has been silent for" in log
    assert "Traceback" not in log, log
    assert house.get("/api/v1/projects/").status == 200
    wait_for(run)  # workers wait, and lose nothing
    assert (run.result, run.attempt) == ({"counted": 60, "attempt": 1}, 1)


def test_connection_cut_during_a_submission_stores_nothing_and_a_repeat_once(house):
    campaign = open_for(house.cast)
    task = house.post(f"/api/v1/campaigns/{campaign.pk}/next/").json
    body = {"submission": str(uuid4()), "answer": answer_to(campaign), "next": True}
    address = f"/api/v1/assignments/{task['id']}/submit/"
    before = AuditEvent.objects.count()
    # The next assignment is made in the same transaction that has just stored the answer.
    with cut("annotation_assignment", "INSERT"):
        lost = house.post(address, body)
        assert (lost.status, lost.in_time) == (503, True)
        assert "Nothing was stored incompletely" in lost.json["detail"]
        assert Judgement.objects.count() == 0
        assert Slot.objects.filter(campaign=campaign, state=Slot.State.TAKEN).count() == 1
        assert Assignment.objects.get(public=task["id"]).state == Assignment.State.OPEN
        assert AuditEvent.objects.count() == before
        again = house.post(address, body)
        assert again.status == 200, again.text
    assert house.post(address, body).status == 200
    assert Judgement.objects.count() == 1
    assert Assignment.objects.get(public=task["id"]).state == Assignment.State.SUBMITTED


def test_connection_cut_during_a_promotion_imports_all_or_nothing(house):
    files = {
        "dataset.json": DATASET, "items.jsonl": ITEMS, "outputs.jsonl": OUTPUTS, "ratings.jsonl": RATINGS,
        "comparisons.jsonl": COMPARISONS,
    }  # fmt: skip
    project = house.cast.foreign

    def rows() -> list[int]:
        return [model.objects.filter(project=project).count() for model in (Item, Output, Rating)]

    with cut("annotation_rating", "INSERT", times=3):
        upload = receive_upload(
            project=project, user=house.cast.stranger, files=[Incoming(n, [as_bytes(c)]) for n, c in files.items()]
        )
        wait_until(lambda: read_state(upload.run) not in Run.ACTIVE, 60)
        assert (upload.run.state, upload.run.attempt) == (Run.State.FAILED, 3)
        assert upload.run.error.startswith("The database cannot be reached, 3 times.")
        assert RunLog.objects.filter(run=upload.run, text__contains="goes back to the queue").count() == 2
        assert rows() == [0, 0, 0]
        retry_run(run=upload.run, user=house.cast.stranger)
        wait_for(upload.run)
    upload.refresh_from_db()
    assert upload.state == Upload.State.DONE
    assert rows() == [len(ITEMS), len(OUTPUTS), len(RATINGS)]
    assert AuditEvent.objects.filter(project=project, verb="upload.done").count() == 1


def test_connection_cut_during_a_claim_or_end_does_not_leave_a_run_hanging(house):
    claimed = "NEW.state = 'running' AND OLD.state = 'queued'"
    with cut("common_run", "UPDATE", claimed):
        run = house.run(steps=3)
        wait_for(run)
    assert run.result == {"counted": 3, "attempt": run.attempt}
    with cut("common_run", "UPDATE", "NEW.state = 'succeeded'"):
        run = house.run(steps=4)
        wait_for(run)
    assert run.result == {"counted": 4, "attempt": 1}
    assert house.stack.end("work", signal.SIGTERM) == 0
