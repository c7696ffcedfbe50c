"""docker-compose.yml and Dockerfile are consistent: promised services, health checks, order, rights, limits, no secrets
in files, and existing commands. No container is started here; tests/flows/test_composed.py runs the same processes."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import stat
import subprocess
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands
from django.urls import resolve

from evalapp.settings import env
from tests.services.composed import interpolate

ROOT = Path(settings.BASE_DIR)
APP_SERVICES = {"prepare", "web", "worker-cpu", "worker-gpu", "worker-train", "worker-live", "beat"}
SERVERS = {"postgres", "redis", "elasticsearch"}
REQUIRED = {"ALLOWED_HOSTS"}
SECRETS = re.compile(r"(SECRET|PASSWORD|TOKEN|AUTH|EMAIL_URL)", re.IGNORECASE)


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "docker-compose.yml").read_text()


@pytest.fixture(scope="module")
def compose(text) -> dict:
    return yaml.safe_load(text)


@pytest.fixture(scope="module")
def services(compose) -> dict:
    return compose["services"]


def example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def command(service: dict) -> str:
    value = service.get("command", [])
    return value if isinstance(value, str) else " ".join(value)


def test_promised_services_exist(services):
    assert set(services) == APP_SERVICES | SERVERS


def test_queues_are_assigned_and_live_takes_no_long_job(services):
    queues = {name: re.search(r"--queues (\S+)", command(services[name])) for name in services}
    found = {name: match[1] for name, match in queues.items() if match}
    assert found == {"worker-cpu": "cpu", "worker-gpu": "gpu", "worker-train": "train", "worker-live": "live"}
    for name in ("worker-gpu", "worker-train", "worker-live"):
        assert "--concurrency 1" in command(services[name])


def test_every_long_running_service_has_a_health_check(services):
    for name, service in services.items():
        if name == "prepare":
            assert service["healthcheck"] == {"disable": True}
            continue
        check = service["healthcheck"]
        assert check["test"][0] in {"CMD", "CMD-SHELL"}, name
        assert {"interval", "timeout", "retries"} <= set(check), name


def test_services_wait_for_their_dependencies(services):
    for name in APP_SERVICES - {"prepare"}:
        conditions = {other: entry["condition"] for other, entry in services[name]["depends_on"].items()}
        assert conditions["prepare"] == "service_completed_successfully", name
        assert conditions["postgres"] == conditions["redis"] == "service_healthy", name
    assert services["prepare"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    # Pages work while Elasticsearch is away; only candidates wait for it.
    assert "elasticsearch" not in services["web"]["depends_on"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)


def test_data_are_on_named_volumes(compose, services):
    for name, service in services.items():
        sources = {entry.partition(":")[0] for entry in service["volumes"]}
        assert sources
        assert sources <= set(compose["volumes"]), name


def test_no_server_is_reachable_from_outside(services):
    assert {name for name, service in services.items() if "ports" in service} == {"web"}
    assert services["web"]["ports"] == ["${PUBLISH:-127.0.0.1:8000}:8000"]


def test_every_secret_comes_only_from_a_file(text, compose, services):
    for name, service in services.items():
        for variable, value in service["environment"].items() if "environment" in service else ():
            if SECRETS.search(variable) and variable not in ("xpack.security.enabled", "PASSWORD_SIGN_IN"):
                assert variable.endswith("_FILE"), f"{name}: {variable}"
                secret = value.removeprefix("/run/secrets/")
                assert secret in service["secrets"], f"{name}: {variable}"
        for secret in re.findall(r"/run/secrets/(\w+)", str(service)):
            assert secret in service["secrets"], f"{name}: {secret}"
    assert {name: entry["file"] for name, entry in compose["secrets"].items()} == {
        name: f"./secrets/{name}" for name in compose["secrets"]
    }
    assert not re.findall(r"\w+://[^@\s]*:[^@\s]*@", text.replace("redis://", "").replace("http://", "")), "a password"
    assert set(re.findall(r"\$\{(\w+):\?", text)) == REQUIRED


def test_secrets_are_created_once_and_kept(compose, tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    make = ["make", "--no-print-directory", "-C", str(tmp_path), "secrets"]
    assert subprocess.run(make, capture_output=True, check=False).returncode == 0
    folder = tmp_path / "secrets"
    made = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(made) == set(compose["secrets"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len({value for name, value in made.items() if name != "email_url"}) == len(made) - 1
    again = subprocess.run(make, capture_output=True, check=False)
    assert again.stdout == b""
    assert {path.name: path.read_text() for path in folder.iterdir()} == made
    with ExitStack() as kept:
        for name, value in made.items():
            kept.enter_context(patch.dict(os.environ, {name.upper(): value}))
        env.secret_key(tmp_path)
        env.token("METRICS_TOKEN")
    ignored = (ROOT / ".gitignore").read_text().split()
    assert {"/secrets/", "/.env"} <= set(ignored)


def test_no_container_has_unneeded_rights(services):
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["user"] not in {"root", "0", 0}, name
        assert not {"privileged", "network_mode", "pid", "devices"} & set(service), name
        # Elasticsearch writes its keystore into a folder of its image.
        assert service.get("read_only", False) is (name != "elasticsearch"), name
        if service.get("read_only"):
            assert any(entry.partition(":")[0] == "/tmp" for entry in service["tmpfs"]), name
    image = (ROOT / "Dockerfile").read_text()
    (number,) = {services[name]["user"] for name in APP_SERVICES}
    assert f"--uid {number.partition(':')[0]} " in image
    assert f"--gid {number.partition(':')[2]} " in image


def test_every_container_has_limits_and_restarts(services):
    sizes = {"m": 1, "g": 1024}
    total = 0.0
    for name, service in services.items():
        assert service["restart"] == ("no" if name == "prepare" else "unless-stopped"), name
        limit = interpolate(str(service["mem_limit"]), {})
        total += int(limit[:-1]) * sizes[limit[-1]]
        assert 0 < float(interpolate(str(service["cpus"]), {})) <= 2, name
        assert service["pids_limit"] > 0, name
        assert service["logging"]["options"]["max-size"], name
    assert total <= 26 * 1024, "the limits together are more than the machine of docs/operations/sizing.md has"
    redis = command(services["redis"])
    assert int(re.search(r"--maxmemory (\d+)mb", redis)[1]) < 512 * 0.5, (
        "Redis needs room in addition to its data to write them"
    )


def test_only_web_publishes_a_port(compose, services):
    assert compose["networks"] == {"inside": {"internal": True}, "outside": {}}
    for name, service in services.items():
        assert service["networks"] == (["inside", "outside"] if name == "web" else ["inside"]), name


def test_example_lists_every_variable_and_leaves_required_ones_empty(text):
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", text))
    assert set(example()) == used
    assert {name for name, value in example().items() if not value} >= REQUIRED
    for name, value in example().items():
        defaults = set(re.findall(rf"\$\{{{name}:-([^}}]*)\}}", text))
        assert defaults <= {value}, f"{name} is {defaults} in docker-compose.yml"


def test_variables_are_known_settings(services):
    from evalapp.settings.env import SETTINGS

    # used by gunicorn, the health check, torch and Python
    others = {"WEB_CONCURRENCY", "WORKER", "OMP_NUM_THREADS", "TMPDIR"}
    known = {setting.name for setting in SETTINGS} | {f"{s.name}_FILE" for s in SETTINGS if s.secret} | others
    for name in APP_SERVICES:
        assert set(services[name]["environment"]) <= known, name


def test_every_command_exists_in_the_repository(services):
    checked = 0
    for name in APP_SERVICES:
        for part in re.split(r"&&|;", command(services[name]).removeprefix("sh -c ")):
            words = [word for word in shlex.split(part) if word != "exec"]
            checked += _check_command(name, words)
    assert checked == 7  # migrate, collectstatic, four workers, beat


def _check_command(name: str, words: list[str]) -> int:
    if not words:  # provided by the image
        return 0
    if words[0] in {"mkdir", "find"}:  # part of every Debian
        return 0
    if words[:2] == ["python", "manage.py"]:
        assert words[2] in get_commands(), name
        return 1
    assert words[:3] == ["celery", "-A", "evalapp"], name
    assert importlib.import_module("evalapp.celery").app.main == "evalapp"
    assert words[3] in {"worker", "beat"}, name
    return 1


def test_health_checks_use_existing_addresses(services):
    web = " ".join(services["web"]["healthcheck"]["test"])
    image = (ROOT / "Dockerfile").read_text()
    for source in (web, image):
        path = re.search(r"http://127\.0\.0\.1:[^/]+(/health/\w+)", source)
        assert path
        assert resolve(path[1])


def test_image_is_built_in_stages_and_does_not_run_as_root():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert sum(line.startswith("FROM ") for line in lines) == 2
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["evalapp"]
    assert any(line.startswith("HEALTHCHECK ") for line in lines)
    assert lines[-1].startswith("CMD ")
    (target,) = re.findall(r"gunicorn (\S+):application", lines[-1])
    assert importlib.import_module(target).application is not None


def test_copied_paths_exist():
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert kept
    assert [path for path in kept if not (ROOT / path).exists()] == []
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    wanted = {path for line in copied for path in line.split()} - {"."}
    assert wanted
    assert wanted <= set(kept), "the image copies what .dockerignore leaves out"


def test_uv_has_one_version():
    versions = {
        match
        for file in ("Makefile", "Dockerfile")
        for match in re.findall(r"(?:UV_VERSION := |uv==)(\d[\d.]*)", (ROOT / file).read_text())
    }
    assert len(versions) == 1


def _client() -> list[str] | None:
    for candidate in (["docker", "compose"], ["docker-compose"], ["podman", "compose"]):
        if shutil.which(candidate[0]):
            asked = subprocess.run([*candidate, "version"], capture_output=True, check=False)
            if asked.returncode == 0:
                return candidate
    return None


@pytest.mark.skipif(_client() is None, reason="no compose client here (docker compose, docker-compose, podman compose)")
def test_compose_client_accepts_the_file_and_refuses_missing_variables(tmp_path):
    client = _client()
    assert client is not None
    filled = tmp_path / "filled.env"
    filled.write_text("".join(f"{name}={value or 'x' * 60}\n" for name, value in example().items()))
    base = [*client, "--project-directory", str(ROOT), "-f", str(ROOT / "docker-compose.yml")]
    accepted = subprocess.run([*base, "--env-file", str(filled), "config", "-q"], capture_output=True, check=False)
    assert accepted.returncode == 0, accepted.stderr.decode()
    empty = [*base, "--env-file", str(ROOT / ".env.example"), "config", "-q"]
    assert subprocess.run(empty, capture_output=True, check=False).returncode != 0
