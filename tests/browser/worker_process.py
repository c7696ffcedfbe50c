"""Executes runs of the tested site in a separate process, as a Celery worker would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.browser.conftest import ROOT, Site

_CODE = """
import sys, importlib, django
django.setup()
from evalapp.common.runner import execute_run
for name in sys.argv[2:]:
    importlib.import_module(name)
for run in sys.argv[1].split(","):
    execute_run(int(run))
"""


@contextmanager
def start_worker(site: Site, *runs: int, jobs: str = "") -> Iterator[subprocess.Popen[Any]]:
    """Start the process and terminate it when the block ends. `jobs`: a module that registers test jobs."""
    command = [sys.executable, "-c", _CODE, ",".join(map(str, runs)), *([jobs] if jobs else [])]
    process = subprocess.Popen(command, cwd=ROOT, env=site.env)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def execute_in_worker(site: Site, *runs: int) -> None:
    with start_worker(site, *runs) as process:
        assert process.wait(180) == 0
