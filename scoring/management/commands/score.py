"""`score`: apply an evaluator to every output that has no score with the same signature."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from evalapp.common.errors import EvalappError
from evalapp.common.models import Run
from evalapp.common.run_lines import follow_run
from evalapp.common.runner import execute_run
from scoring.services.scores import apply_evaluator


def key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"write key=value, not {text!r}")
    return key.strip(), value.strip()


class Command(commands.Command):
    help = "Apply an evaluator to every output not yet scored with the same signature."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", help="a name that `manage.py evaluators` lists")
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--references", default="original", metavar="SET", help="the reference set")
        parser.add_argument(
            "--set",
            dest="settings_given",
            action="append",
            default=[],
            type=key_value,
            metavar="key=value",
            help="an option of the evaluator; may be repeated",
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--detach", action="store_true", help="return at once; the run goes on in a worker")
        where.add_argument("--here", action="store_true", help="work in this process, without worker or queue")

    def work(self, **options: Any) -> dict[str, Any]:
        run = apply_evaluator(
            project=commands.find_project(options["project"]),
            evaluator=options["evaluator"],
            options=dict(options["settings_given"]),
            references=options["references"],
            send=not options["here"],
            any_encoder=True,
        )
        if options["here"]:
            echo = self.say if options["verbosity"] else None
            # None: a worker took it meanwhile; then it is followed like any other.
            run = execute_run(run.pk, echo=echo) or follow_run(run, self.say)
        elif not options["detach"]:
            run = follow_run(run, self.say)
        if run.state in (Run.State.FAILED, Run.State.CANCELLED):
            raise EvalappError(run.error or f"Run {run.pk} was cancelled. Go on with: manage.py retry {run.pk}")
        return {"run": run.pk, "state": run.state, **(run.result or {})}

    def show(self, found: dict[str, Any]) -> None:
        if found["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {found['run']} is {found['state']}. Follow it with: manage.py run {found['run']}")
            return
        self.stdout.write(
            f"{found['evaluator']}: {found['scored']:,} outputs scored, {found['kept']:,} unchanged, "
            f"{found['undefined']:,} undefined, {found['empty']:,} empty, {found['truncated']:,} cut."
        )
        self.stdout.write(found["signature"])
