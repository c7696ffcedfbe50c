"""Real workers for tests of this app: one for trainings, one for online scores, on one database file and one Redis."""

from __future__ import annotations

import subprocess
import sys

from tests.evalapp.common.conftest import Installation


def start(house: Installation, name: str, queues: str) -> subprocess.Popen:
    """A worker of the queues with the toy evaluator in its catalogue; it ends with the installation."""
    command = [
        sys.executable, "-m", "celery", "--quiet", "-A", "evalapp", "worker", "--include", "tests.scoring.toy_worker",
        "--pool", "prefork", "--concurrency", "1", "--queues", queues, "--hostname", f"{name}@%h",
        "--without-gossip", "--without-mingle", "--loglevel", "WARNING",
    ]  # fmt: skip
    return house.spawn(name, command)
