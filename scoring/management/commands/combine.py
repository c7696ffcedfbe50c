"""`combine`: combine several evaluators into one with a name and a row of its own."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.commands import find_project
from evalapp.common.models import Run
from evalapp.common.run_commands import RunCommand, add_options, read_options
from scoring.boards.render.console import as_lines
from scoring.services.combining import CombineOptions, start_combination


class Command(RunCommand):
    help = "Combine several evaluators into one: the mean of their z-scores, or weights learned from human ratings."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("parts", nargs="+", metavar="EVALUATOR", help="two or more evaluators that have scores")
        add_options(parser, CombineOptions, skip=("parts",))
        self.add_run_arguments(parser)

    def start(self, *, send: bool, **options: Any) -> Run:
        return start_combination(
            project=find_project(options["slug"]), options=read_options(CombineOptions, options), send=send
        )

    def show_result(self, result: dict[str, Any]) -> None:
        seen = f", {result['in_training']:,} in groups it learned from" if result["in_training"] else ""
        self.stdout.write(
            f"{result['evaluator']}: {result['outputs']:,} outputs scored, {result['undefined']:,} undefined{seen}."
        )
        rows = [[part["evaluator"], f"{part['weight']:.4f}"] for part in result["parts"]]
        self.stdout.write("\n".join(as_lines(["part", "weight"], rows)))
        self.stdout.write(result["signature"])
