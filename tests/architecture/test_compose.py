"""docker-compose.yml and Dockerfile hold together: the promised services, health, order, no secret written
down, and commands that this repository has. No container is started here."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands
from django.urls import resolve

ROOT = Path(settings.BASE_DIR)
APP_SERVICES = {"prepare", "web", "worker-cpu", "worker-gpu", "worker-live", "beat"}
SERVERS = {"postgres", "redis", "elasticsearch"}
REQUIRED = {"SECRET_KEY", "ALLOWED_HOSTS", "POSTGRES_PASSWORD", "REDIS_PASSWORD", "ELASTIC_PASSWORD"}
SECRETS = re.compile(r"(SECRET|PASSWORD|TOKEN|AUTH)", re.IGNORECASE)


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


def test_the_promised_services_are_there(services):
    assert set(services) == APP_SERVICES | SERVERS


def test_queues_are_shared_out_and_live_never_takes_a_long_job(services):
    queues = {name: re.search(r"--queues (\S+)", command(services[name])) for name in services}
    found = {name: match[1] for name, match in queues.items() if match}
    assert found == {"worker-cpu": "cpu", "worker-gpu": "gpu", "worker-live": "live"}
    for name in ("worker-gpu", "worker-live"):
        assert "--concurrency 1" in command(services[name])


def test_every_long_running_service_has_a_health_check_or_the_images(services):
    for name, service in services.items():
        if name == "prepare":
            assert service["healthcheck"] == {"disable": True}
            continue
        check = service["healthcheck"]
        assert check["test"][0] in {"CMD", "CMD-SHELL"}, name
        assert {"interval", "timeout", "retries"} <= set(check), name


def test_everything_waits_for_what_it_needs(services):
    for name in APP_SERVICES - {"prepare"}:
        conditions = {other: entry["condition"] for other, entry in services[name]["depends_on"].items()}
        assert conditions["prepare"] == "service_completed_successfully", name
        assert conditions["postgres"] == conditions["redis"] == "service_healthy", name
    assert services["prepare"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["web"]["depends_on"]["elasticsearch"] == {"condition": "service_healthy"}
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


def test_no_secret_is_written_down_and_none_has_a_default(text, services):
    for name, service in services.items():
        for variable, value in service["environment"].items():
            if SECRETS.search(variable) and variable != "xpack.security.enabled":
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), f"{name}: {variable}"
    for address in re.findall(r"\w+://[^@\s]*@", text):
        assert re.search(r":\$\{\w+:\?[^}]+\}@$", address), address
    demanded = set(re.findall(r"\$\{(\w+):\?", text))
    assert demanded == REQUIRED
    for variable in REQUIRED:
        assert not re.search(rf"\$\{{{variable}(:-|-|\}})", text), f"{variable} has a default somewhere"


def test_the_example_lists_every_variable_and_leaves_secrets_empty(text):
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", text))
    assert set(example()) == used
    assert {name for name, value in example().items() if not value} >= REQUIRED


def test_variables_are_settings_that_exist(services):
    from evalapp.settings.env import SETTINGS

    others = {"WEB_CONCURRENCY", "WORKER", "OMP_NUM_THREADS"}  # gunicorn's, the health check's, torch's
    known = {setting.name for setting in SETTINGS} | others
    for name in APP_SERVICES:
        assert set(services[name]["environment"]) <= known, name


def test_every_command_is_one_this_repository_has(services):
    checked = 0
    for name in APP_SERVICES:
        for part in re.split(r"&&|;", command(services[name]).removeprefix("sh -c ")):
            words = [word for word in shlex.split(part) if word != "exec"]
            checked += _check_command(name, words)
    assert checked == 6  # migrate, collectstatic, three workers, beat


def _check_command(name: str, words: list[str]) -> int:
    if not words:  # the image's own
        return 0
    if words[:2] == ["python", "manage.py"]:
        assert words[2] in get_commands(), name
        return 1
    assert words[:3] == ["celery", "-A", "evalapp"], name
    assert importlib.import_module("evalapp.celery").app.main == "evalapp"
    assert words[3] in {"worker", "beat"}, name
    return 1


def test_health_checks_ask_addresses_that_exist(services):
    web = " ".join(services["web"]["healthcheck"]["test"])
    image = (ROOT / "Dockerfile").read_text()
    for source in (web, image):
        path = re.search(r"http://127\.0\.0\.1:[^/]+(/health/\w+)", source)
        assert path
        assert resolve(path[1])


def test_the_image_is_built_in_stages_and_does_not_run_as_root():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert sum(line.startswith("FROM ") for line in lines) == 2
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["evalapp"]
    assert any(line.startswith("HEALTHCHECK ") for line in lines)
    assert lines[-1].startswith("CMD ")
    (target,) = re.findall(r"gunicorn (\S+):application", lines[-1])
    assert importlib.import_module(target).application is not None


def test_what_the_image_copies_exists():
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert kept
    assert [path for path in kept if not (ROOT / path).exists()] == []


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
def test_a_compose_client_accepts_the_file_and_refuses_missing_secrets(tmp_path):
    client = _client()
    assert client is not None
    filled = tmp_path / "filled.env"
    filled.write_text("".join(f"{name}={value or 'x' * 60}\n" for name, value in example().items()))
    base = [*client, "--project-directory", str(ROOT), "-f", str(ROOT / "docker-compose.yml")]
    accepted = subprocess.run([*base, "--env-file", str(filled), "config", "-q"], capture_output=True, check=False)
    assert accepted.returncode == 0, accepted.stderr.decode()
    empty = [*base, "--env-file", str(ROOT / ".env.example"), "config", "-q"]
    assert subprocess.run(empty, capture_output=True, check=False).returncode != 0
