"""End the process groups of an owner that was killed (docs/decisions/watchdog.md). Runs by path as a separate process
with the standard library only. Reads lines `+PGID` and `-PGID` until the pipe closes, which also happens when the owner
gets SIGKILL."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

GRACE = 6.0
PROC = Path("/proc")


def group_alive(group: int) -> bool:
    """Return whether a member of the group is running. Zombies do not count: in a container, the first process may
    never reap them."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not (PROC / "self" / "stat").exists():
        return True
    return any(_runs_in(group, entry / "stat") for entry in PROC.iterdir() if entry.name.isdigit())


def _runs_in(group: int, stat: Path) -> bool:
    try:
        # pid (name) state parent group ...; the name may contain spaces and parentheses.
        state, _, member_group = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(member_group) == group and state not in "ZX"


def end_groups(groups: set[int], grace: float = GRACE) -> None:
    """Send TERM, and after `grace` seconds KILL to the remaining groups."""
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 1.0)):
        for group in groups:
            try:
                os.killpg(group, number)
            except (ProcessLookupError, PermissionError):
                continue
        end = time.monotonic() + patience
        while any(group_alive(group) for group in groups) and time.monotonic() < end:
            time.sleep(0.05)


def main() -> None:
    # The owner handles Ctrl-C and TERM; this process ends with it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    end_groups(groups)


if __name__ == "__main__":
    main()
