"""`games`: rank the systems with a trained evaluator that compares texts."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from scoring.boards.render.console import as_text
from scoring.management.job_command import JobCommand


class Command(JobCommand):
    kind = "games"
    own = ("evaluator",)
    help = "Rank systems by Glicko-2 games, which a trained evaluator that compares texts decides."

    def add_first(self, parser: CommandParser) -> None:
        super().add_first(parser)
        parser.add_argument(
            "--by", default="", dest="evaluator", metavar="EVALUATOR",
            help="a trained evaluator; default: the newest that compares texts",
        )  # fmt: skip

    def show_result(self, result: dict[str, Any]) -> None:
        self.stdout.write(as_text(result["table"]))
