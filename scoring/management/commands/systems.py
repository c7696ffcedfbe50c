"""`systems`: the leaderboard of systems, from people's ratings or comparisons or from an evaluator."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from scoring.boards.choices import COVARIATES, METHODS, PER, RATINGS, SUBSETS, WEIGHTS
from scoring.boards.render.console import as_text
from scoring.boards.systems.query import SystemsQuery
from scoring.selectors.leaderboards import parse_query
from scoring.services.leaderboards import get_leaderboard


class Command(commands.Command):
    help = "Leaderboard of systems, from people's ratings or comparisons or from an evaluator."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="default: the first one that was judged")
        parser.add_argument(
            "--method", choices=list(METHODS), help="default: mean rating, where there are only comparisons win rate"
        )
        parser.add_argument("--ratings", default="raw", choices=list(RATINGS))
        parser.add_argument("--systems", default="all", choices=list(SUBSETS))
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")
        parser.add_argument("--campaign", default="", metavar="SLUG", help="only what was judged in this campaign")
        parser.add_argument(
            "--weights", default="none", choices=list(WEIGHTS),
            help="propensity: comparisons of adaptively chosen pairs count by 1 / the chance of their pair",
        )  # fmt: skip
        parser.add_argument(
            "--covariates", default="none", choices=list(COVARIATES),
            help="of bradley-terry, davidson and rao-kupper: what the model adjusts for besides the systems",
        )  # fmt: skip
        parser.add_argument("--per", default="judgement", choices=list(PER), help="of m1: what counts as one")
        parser.add_argument(
            "--by", default="", metavar="EVALUATOR",
            help="rank by an evaluator's scores instead; with --method glicko2 by the games that `games` played",
        )  # fmt: skip
        parser.add_argument("--references", default="original", metavar="SET", help="with --by: the reference set")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        query = parse_query(SystemsQuery, options, project)
        board = get_leaderboard(project=project, query=query)
        return {**board.table, "computed_at": board.computed_at.isoformat()}

    def show(self, found: dict[str, Any]) -> None:
        self.stdout.write(as_text(found))
