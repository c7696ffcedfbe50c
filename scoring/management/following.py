"""What the commands of this room that start a run share: `--set`, `--here`, `--detach`, and following the run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.errors import EvalappError
from evalapp.common.models import Run
from evalapp.common.run_lines import follow_run
from evalapp.common.runner import execute_run


def key_value(text: str) -> tuple[str, str]:
    """`key=value` of a command line."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"write key=value, not {text!r}")
    return key.strip(), value.strip()


def add_set(parser: CommandParser) -> None:
    parser.add_argument(
        "--set",
        dest="settings_given",
        action="append",
        default=[],
        type=key_value,
        metavar="key=value",
        help="an option of the evaluator; may be repeated",
    )


def add_where(parser: CommandParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--detach", action="store_true", help="return at once; the run goes on in a worker")
    where.add_argument("--here", action="store_true", help="work in this process, without worker or queue")


def see_through(run: Run, options: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """Execute the run here, follow it, or leave it to the worker, as was asked; its number, state and result."""
    if options["here"]:
        echo = say if options["verbosity"] else None
        # None: a worker took it meanwhile; then it is followed like any other.
        run = execute_run(run.pk, echo=echo) or follow_run(run, say)
    elif not options["detach"]:
        run = follow_run(run, say)
    if run.state in (Run.State.FAILED, Run.State.CANCELLED):
        raise EvalappError(run.error or f"Run {run.pk} was cancelled. Go on with: manage.py retry {run.pk}")
    return {"run": run.pk, "state": run.state, **(run.result or {})}
