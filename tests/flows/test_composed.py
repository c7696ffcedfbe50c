"""The services of docker-compose.yml as processes: with the files of the image, which are read-only, without
capabilities, with only the environment of the file, and with secrets from files. They start in order, work, survive the
death of a service, and keep their data during an upgrade. tests/architecture/test_compose.py checks what only the
engine enforces (limits, a read-only root)."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from django.db.models import Count

from evalapp.accounts.models import Project, User
from evalapp.accounts.services import create_token
from tests.evalapp.common.conftest import wait_until
from tests.services.composed import (
    ROOT,
    Composed,
    MissingVariable,
    get_unprivileged_prefix,
    interpolate,
    read_compose_file,
)


def copy_image_files(folder: Path) -> Path:
    """Copy the files of the repository that .dockerignore allows in the image."""
    patterns = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        compiled = Path(importlib.util.cache_from_source(name)) if name.endswith(".py") else None
        for path in filter(None, [Path(name), compiled]):  # copy2 keeps the times, so that Python does not recompile
            if (ROOT / path).is_file():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, folder / path)
    return folder


@pytest.fixture
def composed(tmp_path, postgres_db):
    """The installation; Django in this process uses its database."""
    app = copy_image_files(tmp_path / "app")
    subprocess.run(["chmod", "-R", "a-w", app], check=True)
    with Composed(tmp_path / "services", database_url=postgres_db, app=app, tight=True) as services:
        yield services
    subprocess.run(["chmod", "-R", "u+w", app], check=True)


@pytest.mark.slow
def test_same_processes_under_the_same_environment(composed):
    services = composed
    services.start("redis")
    assert "NOAUTH" in ping_redis(services, None)
    assert ping_redis(services, services.secret("redis_password")) == "True"
    services.run_once("prepare")
    assert (services.folder / "data/static/staticfiles.json").exists()
    services.start("web", "worker-cpu", "beat")
    # Processes have no capabilities, and their command lines reveal no secret.
    if get_unprivileged_prefix():
        for name, pid in services.pids().items():
            status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            assert (int(status["CapEff"], 16), int(status["NoNewPrivs"])) == (0, 1), name
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in services.pids().values()]
    for name in set(services.compose["secrets"]) - {"email_url"}:
        assert not [line for line in lines if services.secret(name) in line], name
    assert services.get_status("/metrics", Authorization="Bearer " + services.secret("metrics_token")) == 200
    token = create_owner_token()
    first = upload_items(services, token, "alpha", ["one", "two"])
    assert first["state"] == "done", first

    # The restart policy brings back a dead worker, which takes the waiting runs.
    services.kill("worker-cpu")
    second = upload_items(services, token, "beta", ["three"], wait=False)
    services.start("worker-cpu")
    assert wait_for_upload(services, token, second["id"])["state"] == "done"

    # An upgrade: all services stop, `prepare` runs again, all services start; the data are unchanged.
    rows = count_items_by_project()
    for name in ("beat", "worker-cpu", "web"):
        assert services.stop(name) in {0, -15}, services.log(name)
    services.run_once("prepare")
    services.start("web", "worker-cpu")
    assert count_items_by_project() == rows == {"alpha": 2, "beta": 1}
    assert wait_for_upload(services, token, first["id"])["state"] == "done"
    for name in ("prepare", "web", "worker-cpu", "beat"):
        assert "Traceback" not in services.log(name), name


def create_owner_token() -> str:
    user = User.objects.create_user(username="olga", password="correct-horse-battery", is_superuser=True)
    return create_token(user=user, name="trial", scopes=["read", "write", "manage"], days=1)[1]


def count_items_by_project() -> dict[str, int]:
    return dict(Project.objects.annotate(n=Count("items")).values_list("slug", "n"))


def call_api(services: Composed, token: str, method: str, path: str, **options: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}", **options.pop("headers", {})}
    url = f"{services.url}/api/v1/{path}"
    response = httpx.request(method, url, headers=headers, timeout=60, trust_env=False, **options)
    assert response.status_code in {200, 201, 202}, response.text
    return response.json()


def upload_items(services: Composed, token: str, slug: str, keys: list[str], *, wait: bool = True) -> dict[str, Any]:
    call_api(services, token, "POST", "projects/", json={"slug": slug, "name": slug, "task": "dialogue"})
    body = "id,source\r\n" + "".join(f"{key},text of {key}\r\n" for key in keys)
    upload = call_api(
        services, token, "POST", f"projects/{slug}/uploads/?kind=items", content=body.encode(),
        headers={"Content-Type": "text/csv"},
    )  # fmt: skip
    return wait_for_upload(services, token, upload["id"]) if wait else upload


def wait_for_upload(services: Composed, token: str, number: int) -> dict[str, Any]:
    upload: dict[str, Any] = {}

    def has_ended() -> bool:
        upload.update(call_api(services, token, "GET", f"uploads/{number}/"))
        return upload["state"] in {"done", "faulty", "failed"}

    wait_until(has_ended, 60)
    return upload


def ping_redis(services: Composed, password: str | None) -> str:
    try:
        return str(redis.Redis.from_url(services.redis_url, password=password).ping())
    except redis.AuthenticationError as error:
        return f"NOAUTH {error}"


def test_variables_are_parsed_as_compose_parses_them():
    assert interpolate("a ${X:-b} $${Y} ${Z}", {"Z": "z"}) == "a b ${Y} z"
    assert interpolate("${X:-b}", {"X": "x"}) == "x"
    with pytest.raises(MissingVariable, match="ALLOWED_HOSTS: set it"):
        read_compose_file({})
