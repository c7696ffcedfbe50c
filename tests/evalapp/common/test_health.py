"""Health information for load balancers, Prometheus, the log and the doctor."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from unittest.mock import Mock, patch

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone, translation

from evalapp.accounts.sessions import SessionStore
from evalapp.common import health, logs
from evalapp.common.models import Run, WorkerBeat
from evalapp.common.runner import execute_run
from evalapp.management.commands import doctor

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-more-than-24-characters"


@pytest.fixture
def alone(settings):
    """Only the web process runs."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    settings.ELASTICSEARCH_URL = "http://127.0.0.1:1"


def beat(*queues: str) -> None:
    WorkerBeat.objects.create(name="w@h", queues=list(queues), pid=1, host="h", at=timezone.now())


@pytest.mark.promise("health")
def test_each_part_is_reported_separately(client, alone):
    assert client.get("/health/live").json() == {"status": "ok"}
    answer = client.get("/health/ready")
    assert answer.status_code == 200, "pages work without queue, workers and index"
    found = {"status": "ok", "database": True, "queue": False, "index": False, "disk": True, "workers": False}
    assert answer.json() == found
    beat("cpu", "gpu", "live")
    assert client.get("/health/ready").json()["workers"]


@pytest.mark.promise("health")
def test_without_disk_space_or_database_it_is_not_ready(client, alone, monkeypatch):
    monkeypatch.setattr(health, "free_bytes", lambda: 1000)
    assert client.get("/health/ready").status_code == 503
    monkeypatch.undo()
    monkeypatch.setattr(health, "_database", lambda: False)
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
    assert client.get("/health/live").status_code == 200


@pytest.fixture
def cookies(cast, client):
    """A client whose session cannot be read: the database is gone."""
    client.force_login(cast.owner)
    client.cookies["display"] = "dark.normal.system.ar"
    with patch.object(SessionStore, "load", side_effect=OperationalError("disk I/O error")):
        yield client


@pytest.mark.promise("health")
def test_health_needs_no_session(cookies, alone, monkeypatch, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert cookies.get("/health/live").json() == {"status": "ok"}
        for path in ("/favicon.ico", "/robots.txt", "/static/none.css"):
            assert cookies.get(path).status_code == 404, path
    monkeypatch.setattr(health, "parts", lambda: {"database": False, "disk": True})
    with django_assert_num_queries(0):
        assert cookies.get("/health/ready").status_code == 503
        assert 'evalapp_up{part="database"} 0' in cookies.get("/metrics").content.decode()


@pytest.mark.promise("health")
def test_page_without_database_is_an_error_page(cookies, django_assert_num_queries):
    """It needs no database itself, and states its language."""
    cookies.raise_request_exception = False
    with django_assert_num_queries(0), translation.override("ar"):
        answer = cookies.get("/")
    assert answer.status_code == 503
    assert '<html lang="ar" dir="rtl">' in answer.content.decode()


@pytest.mark.promise("health")
def test_frozen_database_keeps_nobody_waiting(client, alone, monkeypatch):
    """Neither the first request nor those that arrive while the check is open wait; only one check runs at a time."""
    goes_on, asked = threading.Event(), []

    def still() -> bool:
        asked.append(1)
        return goes_on.wait(30)

    monkeypatch.setattr(health, "connection", Mock(vendor="postgresql"))
    monkeypatch.setattr(health, "DATABASE_SECONDS", 0.1)
    monkeypatch.setattr(health, "_answers", still)
    began = time.monotonic()
    for _ in range(3):
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.json()["database"]) == (503, False)
    assert time.monotonic() - began < 25  # out of thirty seconds
    assert asked == [1]
    open_question = health._asked
    goes_on.set()
    assert open_question.result(10)
    monkeypatch.setattr(health, "DATABASE_SECONDS", 10)
    assert client.get("/health/ready").status_code == 200
    assert asked == [1, 1]


def test_large_figures_keep_their_digits(monkeypatch):
    monkeypatch.setattr(health, "metrics", lambda: [("evalapp_runs", "Runs.", [({"kind": "score"}, 1_234_567)])])
    assert health.exposition().endswith('evalapp_runs{kind="score"} 1234567\n')


@pytest.mark.promise("metrics")
def test_metrics_can_be_read_by_prometheus(cast, client, alone):
    beat("cpu")
    Run.objects.create(project=cast.project, kind="score", title="x", input_hash="1")
    Run.objects.create(project=cast.project, kind='a"b\\', title="x", input_hash="2", state="failed")
    answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = answer.content.decode()
    for line in (
        'evalapp_up{part="database"} 1',
        'evalapp_up{part="queue"} 0',
        'evalapp_queue_served{queue="cpu"} 1',
        'evalapp_queue_served{queue="gpu"} 0',
        'evalapp_runs{kind="score",state="queued"} 1',
        'evalapp_runs{kind="a\\"b\\\\",state="failed"} 1',
    ):
        assert line in text.splitlines()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) >= 7


@pytest.mark.promise("metrics")
def test_permission_to_read_the_metrics(settings, alone):
    def status(**more: str) -> int:
        return Client().get("/metrics", **more).status_code

    def by(token: str) -> int:
        return Client(REMOTE_ADDR="10.0.0.5").get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code

    assert status(REMOTE_ADDR="127.0.0.1") == 200
    assert status(REMOTE_ADDR="10.0.0.5") == 404
    assert status(REMOTE_ADDR="127.0.0.1", HTTP_X_FORWARDED_FOR="10.0.0.5") == 404, "a proxy asks for others"
    assert by(TOKEN) == by("") == 404, "there is no token"
    settings.METRICS_TOKEN = TOKEN
    assert by(TOKEN) == 200
    assert by(TOKEN[:-1]) == by("") == 404


@pytest.fixture
def lines(caplog):
    """The log output, parsed as JSON."""
    formatter = logs.JsonFormatter()

    class Keeping(logging.Handler):
        def __init__(self) -> None:
            super().__init__()
            self.kept: list[dict] = []

        def emit(self, record: logging.LogRecord) -> None:
            self.kept.append(json.loads(formatter.format(record)))

    handler = Keeping()
    root = logging.getLogger()
    root.addHandler(handler)
    yield handler.kept
    root.removeHandler(handler)


@pytest.mark.promise("json-log")
def test_lines_carry_their_request_id(client, lines):
    answer = client.get("/no/such/page", headers={"X-Request-ID": "proxy-12345678"})
    assert answer.headers["X-Request-ID"] == "proxy-12345678"
    (line,) = [line for line in lines if line["logger"] == "django.request"]
    assert (line["request"], line["status"], line["level"]) == ("proxy-12345678", 404, "WARNING")
    made = client.get("/health/live", headers={"X-Request-ID": 'x"}\r\nplanted'}).headers["X-Request-ID"]
    assert len(made) == 16
    assert made != client.get("/health/live").headers["X-Request-ID"]
    assert logs.request_id.get() == ""


@pytest.mark.promise("json-log")
def test_lines_carry_their_run_id(cast, lines, monkeypatch):
    run = Run.objects.create(project=cast.project, kind="export", title="x", input_hash="1", params={"format": "none"})

    def broken(*_: object, **__: object) -> None:
        logging.getLogger("evalapp.test").warning("inside")
        raise RuntimeError("broken")

    monkeypatch.setattr("evalapp.common.jobs.Job.load", lambda self: broken)
    execute_run(run.pk)
    ours = [line for line in lines if line.get("run") == run.pk]
    assert {line["message"] for line in ours} >= {"inside", f"run {run.pk} failed"}
    assert any("RuntimeError: broken" in line.get("trace", "") for line in ours)
    assert logs.run_id.get() == ""


@pytest.mark.promise("log", "json-log")
def test_messages_cannot_forge_log_lines():
    record = logging.LogRecord("x", logging.INFO, "f", 1, "asked for %s", ("a\r\nERROR planted",), None)
    plain = logs.PlainFormatter("{levelname} {name}: {message}", style="{").format(record)
    assert plain == "INFO x: asked for a\\r\\nERROR planted"
    assert "\n" not in logs.JsonFormatter().format(record)
    try:
        raise ValueError("x")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert "\nTraceback" in logs.PlainFormatter("{message}", style="{").format(record)


@pytest.mark.promise("doctor")
def test_doctor_lists_gaps_of_a_public_installation(settings):
    assert doctor.deployment_checks() == []
    settings.ALLOWED_HOSTS = ["evalapp.example.org", "127.0.0.1"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    tls, mail = doctor.deployment_checks()
    assert (tls.state, mail.state) == ("optional", "optional")
    assert "SECURE_PROXY=1" in tls.way_out
    assert "EMAIL_URL=smtp://" in mail.way_out
    settings.SECURE_SSL_REDIRECT = True
    assert doctor.deployment_checks()[0].state == "ok"
