"""`games`: rank the systems with a trained evaluator that compares texts."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.commands import find_project
from evalapp.common.models import Run
from evalapp.common.run_commands import RunCommand, add_options, read_options
from scoring.boards.render.console import as_text
from scoring.services.games import GamesOptions, start_games


class Command(RunCommand):
    help = "Rank systems by Glicko-2 games, which a trained evaluator that compares texts decides."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument(
            "--by", default="", dest="evaluator", metavar="EVALUATOR",
            help="a trained evaluator; default: the newest that compares texts",
        )  # fmt: skip
        add_options(parser, GamesOptions, skip=("evaluator",))
        self.add_run_arguments(parser)

    def start(self, *, send: bool, **options: Any) -> Run:
        return start_games(
            project=find_project(options["slug"]), options=read_options(GamesOptions, options), send=send
        )

    def show_result(self, result: dict[str, Any]) -> None:
        self.stdout.write(as_text(result["table"]))
