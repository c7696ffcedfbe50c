"""The worker of browser tests: executes one run of the site in a process of its own, as a worker would."""

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
execute_run(int(sys.argv[1]))
"""


@contextmanager
def working(site: Site, run: int, jobs: str = "") -> Iterator[subprocess.Popen[Any]]:
    """Starts at once; ended at the latest when the block ends. `jobs`: a module that registers jobs of tests."""
    command = [sys.executable, "-c", _CODE, str(run), *([jobs] if jobs else [])]
    process = subprocess.Popen(command, cwd=ROOT, env=site.env)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def work(site: Site, run: int) -> None:
    with working(site, run) as process:
        assert process.wait(180) == 0
