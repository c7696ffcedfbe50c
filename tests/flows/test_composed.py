"""The installation of docker-compose.yml as processes: from the files in the image, which they cannot write to, without
capabilities, with only the environment of the file, and with secrets from files. It starts in order, works, survives
the death of a part, and keeps its data over an upgrade. tests/architecture/test_compose.py reads what the engine
enforces (limits, a read-only root)."""

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
from tests.services.composed import ROOT, Composed, MissingVariable, interpolate, read, without_rights


def copy_image_files(folder: Path) -> Path:
    """The files that .dockerignore leaves in the image, as the repository has them."""
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *kept], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        compiled = Path(importlib.util.cache_from_source(name)) if name.endswith(".py") else None
        for path in filter(None, [Path(name), compiled]):  # with its times, or Python would compile it again
            if (ROOT / path).is_file():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, folder / path)
    return folder


@pytest.fixture
def composed(tmp_path, postgres_db):
    """The installation; Django of this process uses its database."""
    app = copy_image_files(tmp_path / "app")
    subprocess.run(["chmod", "-R", "a-w", app], check=True)
    with Composed(tmp_path / "made", database_url=postgres_db, app=app, tight=True) as made:
        yield made
    subprocess.run(["chmod", "-R", "u+w", app], check=True)


@pytest.mark.slow
def test_same_processes_under_the_same_environment(composed):
    made = composed
    made.start("redis")
    assert "NOAUTH" in ask_redis(made, None)
    assert ask_redis(made, made.secret("redis_password")) == "True"
    made.once("prepare")
    assert (made.folder / "data/static/staticfiles.json").exists()
    made.start("web", "worker-cpu", "beat")
    # The list of processes reveals no secret.
    if without_rights():
        for name, pid in made.pids().items():
            status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            assert (int(status["CapEff"], 16), int(status["NoNewPrivs"])) == (0, 1), name
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in made.pids().values()]
    for name in set(made.compose["secrets"]) - {"email_url"}:
        assert not [line for line in lines if made.secret(name) in line], name
    assert made.asked("/metrics", Authorization="Bearer " + made.secret("metrics_token")) == 200
    token = owner()
    first = uploaded(made, token, "alpha", ["one", "two"])
    assert first["state"] == "done", first

    # The restart policy brings back a dead worker, which takes the waiting runs.
    made.kill("worker-cpu")
    second = uploaded(made, token, "beta", ["three"], wait=False)
    made.start("worker-cpu")
    assert followed(made, token, second["id"])["state"] == "done"

    # An upgrade: everything ends, `prepare` runs again, everything starts; the data are unchanged.
    rows = items_by_project()
    for name in ("beat", "worker-cpu", "web"):
        assert made.stop(name) in {0, -15}, made.log(name)
    made.once("prepare")
    made.start("web", "worker-cpu")
    assert items_by_project() == rows == {"alpha": 2, "beta": 1}
    assert followed(made, token, first["id"])["state"] == "done"
    for name in ("prepare", "web", "worker-cpu", "beat"):
        assert "Traceback" not in made.log(name), name


def owner() -> str:
    """The token of a user who may do everything."""
    user = User.objects.create_user(username="olga", password="correct-horse-battery", is_superuser=True)
    return create_token(user=user, name="trial", scopes=["read", "write", "manage"], days=1)[1]


def items_by_project() -> dict[str, int]:
    return dict(Project.objects.annotate(n=Count("items")).values_list("slug", "n"))


def api(made: Composed, token: str, method: str, path: str, **more: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
    answer = httpx.request(method, f"{made.url}/api/v1/{path}", headers=headers, timeout=60, trust_env=False, **more)
    assert answer.status_code in {200, 201, 202}, answer.text
    return answer.json()


def uploaded(made: Composed, token: str, slug: str, keys: list[str], *, wait: bool = True) -> dict[str, Any]:
    api(made, token, "POST", "projects/", json={"slug": slug, "name": slug, "task": "dialogue"})
    body = "id,source\r\n" + "".join(f"{key},text of {key}\r\n" for key in keys)
    upload = api(
        made, token, "POST", f"projects/{slug}/uploads/?kind=items", content=body.encode(),
        headers={"Content-Type": "text/csv"},
    )  # fmt: skip
    return followed(made, token, upload["id"]) if wait else upload


def followed(made: Composed, token: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def ended() -> bool:
        found.update(api(made, token, "GET", f"uploads/{number}/"))
        return found["state"] in {"done", "faulty", "failed"}

    wait_until(ended, 60)
    return found


def ask_redis(made: Composed, password: str | None) -> str:
    try:
        return str(redis.Redis.from_url(made.redis_url, password=password).ping())
    except redis.AuthenticationError as error:
        return f"NOAUTH {error}"


def test_variables_are_parsed_as_compose_parses_them():
    assert interpolate("a ${X:-b} $${Y} ${Z}", {"Z": "z"}) == "a b ${Y} z"
    assert interpolate("${X:-b}", {"X": "x"}) == "x"
    with pytest.raises(MissingVariable, match="ALLOWED_HOSTS: set it"):
        read({})
