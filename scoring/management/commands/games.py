"""`games`: a trained evaluator that compares texts ranks the systems."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from annotation.models.data import ORIGINAL
from evalapp.common import commands
from evalapp.common.models import Run
from scoring.boards.choices import SUBSETS
from scoring.boards.render.console import as_text
from scoring.management.following import add_set, add_where, see_through
from scoring.services.games import ITEMS, SEEDS, GamesWishes, start_games


class Command(commands.Command):
    help = "Systems by Glicko-2 games between their texts, which a trained evaluator that compares decides."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument(
            "--by", default="", metavar="EVALUATOR", help="what was trained; default: the newest that compares texts"
        )
        parser.add_argument("--systems", default="all", choices=list(SUBSETS))
        parser.add_argument(
            "--references", default=ORIGINAL, metavar="SET", help="the reference set, if the evaluator reads one"
        )
        parser.add_argument(
            "--items", type=int, default=ITEMS, metavar="N",
            help=f"at most so many, drawn by the seed, the same for all systems (default {ITEMS})",
        )  # fmt: skip
        parser.add_argument(
            "--seeds", type=int, default=SEEDS, metavar="R", help=f"times that games are simulated (default {SEEDS})"
        )
        parser.add_argument("--seed", type=int, default=13, metavar="N", help="draws the items and the games")
        add_set(parser)
        add_where(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        wishes = GamesWishes(
            options["by"], options["systems"], options["references"], dict(options["settings_given"]),
            options["items"], options["seeds"], options["seed"],
        )  # fmt: skip
        project = commands.find_project(options["slug"])
        run = start_games(project=project, wishes=wishes, send=not options["here"])
        return see_through(run, options, self.say)

    def show(self, found: dict[str, Any]) -> None:
        if found["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {found['run']} is {found['state']}. Follow it with: manage.py run {found['run']}")
            return
        self.stdout.write(as_text(found["table"]))
