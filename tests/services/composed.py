"""The processes of docker-compose.yml without an engine: the same commands and environment, with paths of the container
(/data, /tmp, /run/secrets, host names, ports) replaced by those of this machine.

    with Composed(folder, database_url=..., app=...) as services:
        services.start("redis"); services.run_once("prepare"); services.start("web", "worker-cpu")
        services.url, services.pid("web"), services.log("web")

Features of the engine (limits, namespaces, a read-only root) are not simulated, and no images are used.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from evalapp.ops import redis as queue
from evalapp.ops.ports import find_free_port, wait_until
from evalapp.ops.processes import Child, Family

ROOT = Path(__file__).resolve().parents[2]
_VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}")
_PLACE = re.compile(r"(?<![\w./])/(data|tmp|run/secrets)(?=[/\"'\s)*]|$)")


class MissingVariable(Exception):
    """A required variable is not set, as `docker compose` would report."""


def interpolate(text: str, variables: Mapping[str, str]) -> str:
    """Replace `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `$$` as Compose does."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name, mark, rest = match.groups()
        value = variables.get(name, "")
        if not value and mark == "?":
            raise MissingVariable(f"{name}: {rest}")
        return value or (rest if mark == "-" else "")

    return _VARIABLE.sub(replace, text)


def interpolate_all(value: Any, variables: Mapping[str, str]) -> Any:
    """Interpolate every string of a structure."""
    if isinstance(value, str):
        return interpolate(value, variables)
    if isinstance(value, list):
        return [interpolate_all(part, variables) for part in value]
    if isinstance(value, dict):
        return {key: interpolate_all(part, variables) for key, part in value.items()}
    return value


def read_compose_file(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return docker-compose.yml with its variables replaced."""
    return interpolate_all(yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8")), variables)


def read_image() -> dict[str, Any]:
    """Return ENV and CMD of the final image in the Dockerfile."""
    final = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").rpartition("\nFROM ")[2]
    env = dict(part.split("=", 1) for line in re.findall(r"^ENV (.+)$", final, re.MULTILINE) for part in line.split())
    (command,) = re.findall(r"^CMD (\[.+\])$", final, re.MULTILINE)
    return {"env": env, "command": yaml.safe_load(command)}


def get_unprivileged_prefix() -> list[str]:
    """Return a command prefix that drops all capabilities and prevents new ones; empty where that is impossible. Only
    root has capabilities; without them, even root cannot write read-only files."""
    program = shutil.which("setpriv")
    if program is None:
        return []
    drop = ["--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    prefix = [program, "--no-new-privs", *drop]
    works = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if works else []


class Composed:
    """A context manager; nothing runs until `start`. `app`: the folder of the code; `tight`: processes have no
    capabilities and get none, as `cap_drop` and `no-new-privileges` demand."""

    def __init__(
        self, folder: Path, *, database_url: str, app: Path = ROOT, tight: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.app, self._database_url = folder, app, database_url
        self._prefix = get_unprivileged_prefix() if tight else []
        self._ports = {"web": find_free_port(), "redis": find_free_port()}
        self.url = f"http://127.0.0.1:{self._ports['web']}"
        self.redis_url = f"redis://127.0.0.1:{self._ports['redis']}/0"
        self.compose = read_compose_file({"ALLOWED_HOSTS": "127.0.0.1", "SECURE_PROXY": "0", **(variables or {})})
        self._image = read_image()
        for name in ("data", "tmp", "run/secrets"):
            (folder / name).mkdir(parents=True)
        for name, entry in self.compose["secrets"].items():
            assert entry["file"] == f"./secrets/{name}"
            value = "consolemail://" if name == "email_url" else secrets.token_hex(32)
            (folder / "run/secrets" / name).write_text(value + "\n")
        self._family = Family()
        self._children: dict[str, Child] = {}

    def __enter__(self) -> Composed:
        return self

    def __exit__(self, *_: object) -> None:
        self._family.close()

    def secret(self, name: str) -> str:
        return (self.folder / "run/secrets" / name).read_text().strip()

    # ---- the file, adapted to this machine ----------------------------------------------------------------

    def localize(self, text: str) -> str:
        text = _PLACE.sub(lambda match: str(self.folder / match[1]), text)
        text = text.replace("0.0.0.0:", "127.0.0.1:").replace("redis://redis:6379/0", self.redis_url)
        return text.replace("http://127.0.0.1:8000", self.url)

    def build_command(self, name: str) -> list[str]:
        command = self.compose["services"][name].get("command") or self._image["command"]
        words = [self.localize(word) for word in command]
        if name == "redis":
            words[-1] += f" --bind 127.0.0.1 --port {self._ports['redis']} --dir {self.folder / 'data'}"
        return words

    def build_environment(self, name: str) -> dict[str, str]:
        """Return only the variables of the image and the service, and a PATH with this Python."""
        env = {**self._image["env"], **self.compose["services"][name].get("environment", {})}
        env = {key: self.localize(str(value)) for key, value in env.items()}
        env["PATH"] = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        if "DATABASE_URL" in env:
            env["DATABASE_URL"] = self._database_url
            env["ELASTICSEARCH_URL"] = ""  # retrieval falls back to the built-in index, as documented
        if name == "web":
            env["PORT"] = str(self._ports["web"])
        # One core per process: test machines have few, and results must not depend on their number.
        env.setdefault("OMP_NUM_THREADS", "1")
        return env

    # ---- processes ----------------------------------------------------------------------------------------

    def _spawn(self, name: str) -> Child:
        with (self.folder / f"{name}.log").open("ab") as output:
            child = self._family.spawn(
                name,
                [*self._prefix, *self.build_command(name)],
                env=self.build_environment(name),
                cwd=self.folder if name == "redis" else self.app,
                output=output,
            )
        self._children[name] = child
        return child

    def run_once(self, name: str, seconds: float = 400.0) -> None:
        """Run a service to its end; it must exit successfully."""
        status = self._spawn(name).process.wait(seconds)
        self._family.forget(self._children.pop(name))
        assert status == 0, self.log(name)

    def start(self, *names: str, seconds: float = 120.0) -> None:
        for name in names:
            if name in self._children:
                self._family.forget(self._children.pop(name))
            log_length = len(self.log(name))
            child = self._spawn(name)
            is_ready = self._make_readiness_check(name, log_length)
            wait_until(lambda: is_ready() or child.process.poll() is not None, seconds)  # noqa: B023
            assert child.process.poll() is None, f"{name} ended:\n{self.log(name)[-3000:]}"
            assert is_ready(), f"{name} is not ready:\n{self.log(name)[-3000:]}"

    def _make_readiness_check(self, name: str, log_length: int) -> Callable[[], bool]:
        if name == "redis":
            return lambda: queue.answers(self.redis_url)
        if name == "web":
            return lambda: self.get_status("/health/ready") == 200
        if name == "beat":
            return lambda: any((self.folder / "tmp").glob("beat-schedule*"))
        return lambda: " ready" in self.log(name)[log_length:]

    def get_status(self, path: str, **headers: str) -> int:
        """Return the status of the response to a request; 0 without a response."""
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def pid(self, name: str) -> int:
        return self._children[name].pid

    def pids(self) -> dict[str, int]:
        return {name: child.pid for name, child in self._children.items()}

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self, name: str) -> None:
        child = self._children.pop(name)
        child.signal_group(signal.SIGKILL)
        child.process.wait(10)
        self._family.forget(child)

    def stop(self, name: str, seconds: float = 40.0) -> int:
        """Send TERM, like `docker compose stop`; return the exit status."""
        child = self._children.pop(name)
        child.process.send_signal(signal.SIGTERM)
        status = child.process.wait(seconds)
        self._family.forget(child)
        return status

    def manage(self, *arguments: str, name: str = "web", seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Run manage.py in the environment of a service."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=self.app, env=self.build_environment(name),
            capture_output=True, text=True, check=False, timeout=seconds,
        )  # fmt: skip
