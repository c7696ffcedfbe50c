"""`robustness`: score the kinds of texts that people wrote under constraints with one evaluator."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.commands import find_project
from evalapp.common.models import Run
from evalapp.common.run_commands import RunCommand, add_options, read_options
from scoring.boards.render.console import as_lines
from scoring.services.robustness import RobustnessOptions, start_robustness

FIGURES = ("score", "mean", "sd")


class Command(RunCommand):
    help = "Scores of an evaluator by kind of text: by machines, and by people under each constraint."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", help="a name that `manage.py evaluators` lists, or of a trained evaluator")
        parser.add_argument("--project", required=True, metavar="SLUG")
        add_options(parser, RobustnessOptions, skip=("evaluator",))
        self.add_run_arguments(parser)

    def start(self, *, send: bool, **options: Any) -> Run:
        return start_robustness(
            project=find_project(options["project"]), options=read_options(RobustnessOptions, options), send=send,
            any_encoder=True,
        )  # fmt: skip

    def show_result(self, result: dict[str, Any]) -> None:
        rows = [
            [row["kind"], row["what"], str(row["n"]), *("-" if row[k] is None else f"{row[k]:.3f}" for k in FIGURES)]
            for row in result["rows"]
        ]
        self.stdout.write(f"{result['evaluator']} by kind of text, each compared with the item's original")
        self.stdout.write("\n".join(as_lines(["kind", "texts", "n", *FIGURES], rows, left=(0, 1))))
        if result["n_in_training"]:
            self.stdout.write(f"{result['n_in_training']} texts belong to groups in its training data.")
        self.stdout.write(result["signature"])
