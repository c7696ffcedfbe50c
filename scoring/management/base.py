"""What the commands of this room share: finding a project, one JSON object on stdout, errors as exit codes, and
following a run until it ends."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError, NotThere
from evalapp.common.models import Run
from evalapp.common.queue import queue_has_worker

POLL_SECONDS = 0.5


class ScoringCommand(BaseCommand):
    """`answer` does the work and returns plain values; `--json` prints them, else `show` prints them for people."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = self.answer(**options)
        except NotThere as error:
            raise CommandError(error.detail, returncode=2) from error
        except EvalappError as error:
            lines = [error.detail, *(str(fault) for fault in error.faults if fault.message not in error.detail)]
            raise CommandError("\n".join(lines), returncode=1) from error
        if options["json"]:
            self.stdout.write(json.dumps(found, ensure_ascii=False, allow_nan=False))
        else:
            self.show(found)

    def answer(self, **options: Any) -> dict[str, Any]:
        raise NotImplementedError

    def show(self, found: dict[str, Any]) -> None:
        raise NotImplementedError

    def say(self, text: str) -> None:
        self.stderr.write(text)

    def write_table(self, head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
        """Aligned columns: texts to the left, numbers to the right."""
        widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
        for row in [head, *rows]:
            cells = [c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
            self.stdout.write("  ".join(cells).rstrip())


def find_project(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        slugs = list(Project.objects.order_by("slug").values_list("slug", flat=True)[:10])
        known = (
            f"There are: {', '.join(slugs)}." if slugs else "There is none yet: manage.py load FOLDER --project SLUG"
        )
        raise NotThere(f"There is no project “{slug}”. {known}")
    return project


def follow_run(run: Run, say: Callable[[str], None]) -> Run:
    """Wait until the run has ended, telling how far it is; Ctrl-C leaves it running."""
    told = ""
    seen = 0
    warned = False
    while True:
        run.refresh_from_db()
        for line in run.log.filter(pk__gt=seen).order_by("pk"):
            seen = line.pk
            say(line.text)
        told = _tell(run, told, say)
        if not run.is_active:
            return run
        if run.state == Run.State.QUEUED and not warned and not queue_has_worker(run.queue):
            say(f"No worker is running: start one with `manage.py up`, or use --here. Run {run.pk} waits.")
            warned = True
        time.sleep(POLL_SECONDS)


def _tell(run: Run, told: str, say: Callable[[str], None]) -> str:
    total = f" of {run.total:,}" if run.total else ""
    text = f"{run.get_state_display()}: {run.done:,}{total} {run.unit} {run.phase}".rstrip()
    if text == told:
        return told
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}" + ("" if run.is_active else "\n"))
        sys.stderr.flush()
    else:
        say(text)
    return text


def interval(estimate: dict[str, Any], digits: int = 3) -> str:
    """`0.341 [0.220, 0.455]`, or a dash where it is undefined."""
    if estimate["value"] is None:
        return "-"
    text = f"{estimate['value']:.{digits}f}"
    if estimate["low"] is None:
        return text
    return f"{text} [{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"
