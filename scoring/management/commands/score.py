"""`score`: apply an evaluator to every output that has no score with the same signature."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from evalapp.common.models import Run
from scoring.management.following import add_set, add_where, see_through
from scoring.services.scores import apply_evaluator


class Command(commands.Command):
    help = "Apply an evaluator to every output not yet scored with the same signature."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", help="a name that `manage.py evaluators` lists, or what a training was called")
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--references", default="original", metavar="SET", help="the reference set")
        add_set(parser)
        add_where(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        run = apply_evaluator(
            project=commands.find_project(options["project"]),
            evaluator=options["evaluator"],
            options=dict(options["settings_given"]),
            references=options["references"],
            send=not options["here"],
            any_encoder=True,
        )
        for line in run.log.all() if options["here"] else ():
            self.say(line.text)  # a warning about the texts; who follows a run is shown all its lines
        return see_through(run, options, self.say)

    def show(self, found: dict[str, Any]) -> None:
        if found["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {found['run']} is {found['state']}. Follow it with: manage.py run {found['run']}")
            return
        self.stdout.write(
            f"{found['evaluator']}: {found['scored']:,} outputs scored, {found['kept']:,} unchanged, "
            f"{found['undefined']:,} undefined, {found['empty']:,} empty, {found['truncated']:,} cut."
        )
        if found.get("unknown"):
            self.stdout.write(f"  {found['unknown']:,} have words that the encoder does not know")
        for reason, count in found.get("why_undefined", {}).items():
            self.stdout.write(f"  {count:,} undefined: {reason}")
        if found.get("in_training"):
            self.stdout.write(
                f"  {found['in_training']:,} are of groups it learned from: marked in all downloads, left out where "
                "evaluators are compared"
            )
        self.stdout.write(found["signature"])
