"""`runs`, `run`, `cancel`, `retry`, `createowner` from outside."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from evalapp.accounts.models import User
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run
from evalapp.common.runner import execute_run
from tests.evalapp.common.run_jobs import REFUSED  # the module registers the kinds of job


def told(*arguments, **options) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


@pytest.fixture
def failed(cast) -> Run:
    run = enqueue_run(kind="test-refuse", project=cast.project, params={}, title="Import of o.csv", send=False)
    return execute_run(run.pk)


def test_runs(failed):
    assert failed.state_label in told("runs")
    assert REFUSED in told("runs", "alpha")
    assert json.loads(told("runs", "alpha", "--json"))["runs"][0]["state"] == "failed"
    assert "No runs." in told("runs", "alpha", "--active")
    with pytest.raises(CommandError, match="Projects: alpha, alpha-foreign"):
        told("runs", "beta")


def test_run(failed):
    assert "o.csv:3: No text." in told("run", str(failed.pk))
    body = json.loads(told("run", str(failed.pk), "--json"))
    assert body["errors"][0]["line"] == 3
    with pytest.raises(SystemExit) as ended:
        told("run", str(failed.pk), "--follow")
    assert ended.value.code == 1
    with pytest.raises(CommandError, match="no run 999"):
        told("run", "999")


def test_interrupted_following_says_that_the_run_continues(cast, monkeypatch):
    """Ctrl-C only ends following; the earlier message “stopped” was untrue of the run."""
    run = enqueue_run(kind="test-count", project=cast.project, params={"steps": 1}, title="Count", send=False)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evalapp.common.run_lines.time.sleep", interrupt)
    err = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("run", str(run.pk), "--follow", stdout=io.StringIO(), stderr=err)
    assert ended.value.code == 130
    assert f"evalapp cancel {run.pk}" in err.getvalue()
    assert f"evalapp run {run.pk} --follow" in err.getvalue()
    assert "stopped\n" not in err.getvalue()
    run.refresh_from_db()
    assert run.is_active


def test_retry_and_cancel(failed):
    assert "is in the queue again" in told("retry", str(failed.pk))
    assert json.loads(told("cancel", str(failed.pk), "--json"))["state"] == "cancelled"
    with pytest.raises(CommandError, match="already ended"):
        told("cancel", str(failed.pk))


def test_error_is_also_json(failed):
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("cancel", "999", "--json", stdout=out)
    assert json.loads(out.getvalue())["error"] == "not-found"


def test_createowner(db, monkeypatch):
    made = json.loads(told("createowner", "olga", "--email", "olga@example.org", "--json"))
    user = User.objects.get(username="olga")
    assert user.is_superuser
    assert user.check_password(made["password"])
    with pytest.raises(CommandError, match="changepassword olga"):
        told("createowner", "olga")
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    with pytest.raises(CommandError, match="too short") as refused:
        told("createowner", "oskar", "--password-stdin")
    assert refused.value.returncode == 1
    with pytest.raises(CommandError, match="username: ") as refused:
        told("createowner", "no name")
    assert refused.value.returncode == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("a-long-enough-one\n"))
    assert "password" not in json.loads(told("createowner", "oskar", "--password-stdin", "--json"))
