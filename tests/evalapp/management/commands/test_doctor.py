import json

import pytest
from django.core.management import call_command
from redis.exceptions import AuthenticationError

from evalapp.common.jobs import QUEUES
from evalapp.management.commands import doctor
from evalapp.ops.checks import MISSING, OK, OPTIONAL


@pytest.fixture
def no_redis(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"


@pytest.mark.promise("doctor")
@pytest.mark.django_db
def test_missing_parts_are_reported_with_a_remedy(no_redis, capsys):
    with pytest.raises(SystemExit) as ended:
        call_command("doctor")
    assert ended.value.code == 1
    text = capsys.readouterr().out
    assert "MISSING   redis" in text
    assert "MISSING   queue live" in text
    assert "-> Start all with `evalapp up`" in text
    assert "ok        migrations" in text


@pytest.mark.django_db
def test_json_is_one_object(no_redis, capsys):
    with pytest.raises(SystemExit):
        call_command("doctor", "--json")
    answer = json.loads(capsys.readouterr().out)
    assert answer["healthy"] is False
    states = {check["name"]: check["state"] for check in answer["checks"]}
    assert states["database"] == states["migrations"] == states["python"] == OK
    assert states["redis"] == states["queue cpu"] == MISSING


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("served", "missing", "train"),
    [
        ({f"{name}@host": {name} for name in QUEUES}, set(), OK),
        # A worker of an earlier version serves gpu: trainings run there, and scoring waits for them.
        ({"old@host": {"cpu", "gpu", "live"}}, set(), OPTIONAL),
        ({"one@host": {"cpu", "live"}}, {"queue gpu", "queue train"}, MISSING),
    ],
)
def test_each_queue_needs_a_worker(monkeypatch, capsys, served, missing, train):
    monkeypatch.setattr("evalapp.ops.redis.answers", lambda url: True)
    monkeypatch.setattr(doctor, "_consumers", lambda: served)
    states = {check.name: check.state for check in doctor.worker_checks()}
    assert {name for name, state in states.items() if state == MISSING} == missing
    assert states["queue train"] == train
    if not missing:
        call_command("doctor")
        text = capsys.readouterr().out
        assert "ok        queue gpu" in text
        assert next(name for name, queues in served.items() if "gpu" in queues) in text
        assert "MISSING" not in text


@pytest.mark.django_db
def test_redis_refusal_is_explained(monkeypatch, capsys):
    def refuse() -> None:
        raise AuthenticationError("Authentication required.")

    monkeypatch.setattr("evalapp.ops.redis.answers", lambda url: True)
    monkeypatch.setattr(doctor, "_consumers", refuse)
    with pytest.raises(SystemExit):
        call_command("doctor")
    text = capsys.readouterr().out
    assert "Redis refuses requests: Authentication required." in text
    assert "REDIS_PASSWORD" in text


@pytest.mark.django_db
def test_outdated_tables_are_reported(monkeypatch):
    monkeypatch.setattr("django.db.migrations.executor.MigrationExecutor.migration_plan", lambda *_: [1, 2])
    database, migrations = doctor.database_checks()
    assert database.state == OK
    assert (migrations.state, migrations.found) == (MISSING, "2 not applied")
    assert "migrate" in migrations.way_out
