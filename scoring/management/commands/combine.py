"""`combine`: combine several evaluators into one with a name and a row of its own."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from scoring.boards.render.console import as_lines
from scoring.management.job_command import JobCommand


class Command(JobCommand):
    kind = "combine"
    own = ("parts",)
    help = "Combine several evaluators into one: the mean of their z-scores, or weights learned from human ratings."

    def add_first(self, parser: CommandParser) -> None:
        super().add_first(parser)
        parser.add_argument("parts", nargs="+", metavar="EVALUATOR", help="two or more evaluators that have scores")

    def show_result(self, result: dict[str, Any]) -> None:
        seen = f", {result['in_training']:,} in groups it learned from" if result["in_training"] else ""
        self.stdout.write(
            f"{result['evaluator']}: {result['outputs']:,} outputs scored, {result['undefined']:,} undefined{seen}."
        )
        rows = [[part["evaluator"], f"{part['weight']:.4f}"] for part in result["parts"]]
        self.stdout.write("\n".join(as_lines(["part", "weight"], rows)))
        self.stdout.write(result["signature"])
