"""`robustness`: one evaluator over the kinds of texts that people wrote under constraints."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from evalapp.common.models import Run
from scoring.boards.render.console import as_lines
from scoring.management.following import add_set, add_where, see_through
from scoring.selectors.written_kinds import SAMPLE
from scoring.services.robustness import RobustnessWishes, start_robustness


class Command(commands.Command):
    help = "An evaluator's scores by kind of text: of machines, and written by people under each constraint."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", help="a name that `manage.py evaluators` lists, or what a training was called")
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument(
            "--sample", type=int, default=SAMPLE, metavar="N",
            help=f"of items with wrong answers of their own, at most so many (default {SAMPLE})",
        )  # fmt: skip
        parser.add_argument("--seed", type=int, default=13, metavar="N", help="draws them")
        add_set(parser)
        add_where(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        wishes = RobustnessWishes(
            options["evaluator"], dict(options["settings_given"]), options["sample"], options["seed"]
        )
        project = commands.find_project(options["project"])
        run = start_robustness(project=project, wishes=wishes, send=not options["here"], any_encoder=True)
        return see_through(run, options, self.say)

    def show(self, found: dict[str, Any]) -> None:
        if found["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {found['run']} is {found['state']}. Follow it with: manage.py run {found['run']}")
            return
        head = ["kind", "texts", "n", "score", "mean", "sd"]
        rows = [
            [row["kind"], row["what"], str(row["n"]), *(_shown(row[key]) for key in ("score", "mean", "sd"))]
            for row in found["rows"]
        ]
        self.stdout.write(f"{found['evaluator']} by kind of text, each against the item's original")
        self.stdout.write("\n".join(as_lines(head, rows, left=(0, 1))))
        if found["n_in_training"]:
            self.stdout.write(f"{found['n_in_training']} of these texts are for groups that it learned from.")
        self.stdout.write(found["signature"])


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
