"""Install pinned requirement files into the virtual environment with uv, or pin what pyproject.toml names. uv ignores
pip's settings: indexes, link folders and certificates are passed on. Run by path before anything is installed, so it
uses the standard library only."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

# pip's option -> (uv's variable, how uv separates several values); None: one value only.
_HANDED_ON: dict[str, tuple[str, str | None]] = {
    "find-links": ("UV_FIND_LINKS", ","),
    "index-url": ("UV_DEFAULT_INDEX", None),
    "extra-index-url": ("UV_INDEX", " "),
    "no-index": ("UV_NO_INDEX", None),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", None),
    "timeout": ("UV_HTTP_TIMEOUT", None),
}
_SYSTEM_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_ENVIRONMENT_NAMES = {"timeout": "PIP_DEFAULT_TIMEOUT"}
_COMPILE = ("--quiet", "--universal", "--no-header")
#: Extras of pyproject.toml that an installation has: requirements.txt. Those of all others are in requirements-dev.txt.
INSTALLED_EXTRAS = ("client", "metrics", "torch", "server", "postgres", "redis-server")
#: Extras in neither file: their packages are large, and tests skip them where they are not installed.
UNPINNED_EXTRAS = ("mlflow", "wandb")


def parse_pip_config(listing: str) -> dict[str, str]:
    """Parse the output of `pip config list` (`section.name='value'`); install overrides global."""
    options: dict[str, str] = {}
    for section in ("global", "install"):
        for line in listing.splitlines():
            key, equals, value = line.partition("=")
            if equals and key.startswith(f"{section}."):
                options[key.removeprefix(f"{section}.")] = value.strip().strip("'\"")
    return options


def uv_environment(
    environ: Mapping[str, str], configured: Mapping[str, str], *, system_certificates: bool = False
) -> dict[str, str]:
    """Return `environ` with uv's variables set from pip's variables or files; existing uv variables stay."""
    result = dict(environ)
    for option, (variable, separator) in _HANDED_ON.items():
        pip_variable = _ENVIRONMENT_NAMES.get(option, "PIP_" + option.upper().replace("-", "_"))
        value = environ.get(pip_variable) or configured.get(option)
        if not value or variable in environ:
            continue
        values = value.replace("\\n", " ").split()
        result[variable] = value.strip() if separator is None else separator.join(values)
    if system_certificates and "SSL_CERT_FILE" not in result:
        result.setdefault("UV_SYSTEM_CERTS", "1")  # by default uv trusts its own list
    if "UV_INDEX" in result:
        # pip takes the best version of all indexes; uv would stop at the first index with the name.
        result.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    return result


def _list_locks() -> list[list[str]]:
    """Return the options that write each file from those before it. Pins that still fit stay."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed, other = [], []
    for extra in project["optional-dependencies"]:
        if extra in UNPINNED_EXTRAS:
            continue
        (installed if extra in INSTALLED_EXTRAS else other).extend(["--extra", extra])
    return [
        ["pyproject.toml", *installed, "-o", "requirements.txt"],
        ["pyproject.toml", *other, "-c", "requirements.txt", "-o", "requirements-dev.txt"],
        ["requirements.txt", "--no-deps", "--no-annotate", "--generate-hashes", "-o", "requirements.lock"],
    ]


def main(files: list[str]) -> int:
    if not files or (files[0] == "--lock" and len(files) != 1):
        print("usage: install.py REQUIREMENTS_FILE ... | install.py --lock", file=sys.stderr)
        return 2
    binaries = Path(sys.executable).parent
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    certificates = any(Path(path).exists() for path in _SYSTEM_CERTIFICATES)
    environment = uv_environment(os.environ, parse_pip_config(listing), system_certificates=certificates)
    if files[0] == "--lock":
        for options in _list_locks():
            command = [str(binaries / "uv"), "pip", "compile", *_COMPILE, *options]
            if code := subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode:
                return code
        return 0
    command = [str(binaries / "uv"), "pip", "install", "--python", sys.executable]
    for file in files:
        command += ["-r", file]
        if file.endswith(".lock"):
            command.append("--require-hashes")
    if not sys.stderr.isatty():
        command.append("--quiet")  # the list of 170 packages is not logged
    print(f"installing {' '.join(files)}", file=sys.stderr, flush=True)
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
