"""`score`: apply an evaluator to every output that has no score with the same signature."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.commands import find_project
from evalapp.common.models import Run
from evalapp.common.run_commands import RunCommand, add_options
from scoring.services.scores import ScoringOptions, apply_evaluator


class Command(RunCommand):
    help = "Apply an evaluator to every output not yet scored with the same signature."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", help="a name that `manage.py evaluators` lists, or of a trained evaluator")
        parser.add_argument("--project", required=True, metavar="SLUG")
        add_options(parser, ScoringOptions, skip=("evaluator",))
        self.add_run_arguments(parser)

    def start(self, *, send: bool, **options: Any) -> Run:
        run = apply_evaluator(
            project=find_project(options["project"]), evaluator=options["evaluator"], options=dict(options["options"]),
            references=options["references"], send=send, any_encoder=True,
        )  # fmt: skip
        for line in run.log.all() if options["here"] else ():
            self.say(line.text)  # a warning about the texts, which following the run would show
        return run

    def show_result(self, result: dict[str, Any]) -> None:
        self.stdout.write(
            f"{result['evaluator']}: {result['scored']:,} outputs scored, {result['kept']:,} unchanged, "
            f"{result['undefined']:,} undefined, {result['empty']:,} empty, {result['truncated']:,} truncated."
        )
        if result.get("unknown"):
            self.stdout.write(f"  {result['unknown']:,} have words that the encoder does not know")
        for reason, count in result.get("why_undefined", {}).items():
            self.stdout.write(f"  {count:,} undefined: {reason}")
        if result.get("in_training"):
            self.stdout.write(
                f"  {result['in_training']:,} belong to groups it learned from: marked in downloads, left out where "
                "evaluators are compared"
            )
        self.stdout.write(result["signature"])
