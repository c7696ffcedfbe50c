"""`agreement`: how far people agree, for every aspect or for one in detail."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.choices import JUDGED, RATINGS, SCALES
from scoring.boards.render.console import as_text
from scoring.selectors.leaderboards import parse_query
from scoring.services.leaderboards import get_leaderboard


class Command(commands.Command):
    help = "Agreement among people: every aspect, or one in detail with its raters."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="one aspect in detail; default: a line for each")
        parser.add_argument("--judged", default="", choices=["", *JUDGED], help="with --aspect: one way of judging")
        parser.add_argument("--campaign", default="", metavar="C", help="only what was judged in this campaign")
        parser.add_argument(
            "--scale", default="auto", choices=list(SCALES), help="default: ratings interval, verdicts nominal"
        )
        parser.add_argument(
            "--ratings", default="raw", choices=list(RATINGS),
            help="as given, z-scores per rater (z-shrunk: shrunk towards all raters), or ranks within item and rater",
        )  # fmt: skip
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        query = parse_query(AgreementQuery, options)
        if query.aspect:
            from scoring.selectors.aspects import choose_judged_way

            query = AgreementQuery(**{**vars(query), "judged": choose_judged_way(project, query).judged})
        board = get_leaderboard(project=project, query=query)
        return {**board.table, "computed_at": board.computed_at.isoformat()}

    def show(self, found: dict[str, Any]) -> None:
        self.stdout.write(as_text(found))
