"""One installation per data folder: a lock that the operating system releases when its holder ends."""

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from .errors import AlreadyRunning

NAME = "up.lock"


class FolderLock:
    """Holds `up.lock` in a folder. The descriptor may be passed to a process that cleans up, so that the folder stays
    locked until that is done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self.descriptor = -1

    def acquire(self, address: str, patience: float = 0.0) -> None:
        """Take the lock or raise AlreadyRunning. `patience`: seconds to wait if the holder has died and its children
        are still being ended."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                holder = read(self.folder)
                pid = holder.get("pid") if holder else None
                if (pid and alive(pid)) or time.monotonic() >= deadline:
                    os.close(descriptor)
                    raise AlreadyRunning(self.folder, pid, str((holder or {}).get("address", ""))) from error
                time.sleep(0.1)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "address": address}).encode(), 0)
        self.descriptor = descriptor

    def release(self) -> None:
        if self.descriptor >= 0:
            os.ftruncate(self.descriptor, 0)
            os.close(self.descriptor)
            self.descriptor = -1


def read(folder: Path) -> dict[str, Any] | None:
    """Return who wrote the lock last ({"pid", "address"}), or None. The lock may be free."""
    try:
        content = json.loads((folder / NAME).read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("pid"), int) else None


def held(folder: Path) -> bool:
    """Return whether a process holds the folder."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
