"""`agreement`: inter-annotator agreement of every aspect, or of one in detail."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.accounts.models import Project
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.base import Query
from scoring.boards.choices import JUDGED, RATINGS, SCALES
from scoring.management.board_command import BoardCommand
from scoring.selectors.leaderboards import parse_query


class Command(BoardCommand):
    help = "Inter-annotator agreement: every aspect, or one in detail with its raters."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument(
            "--aspect", default="", metavar="A", help="one aspect in detail; default: a line per aspect"
        )
        parser.add_argument(
            "--judged", default="", choices=["", *JUDGED], help="with --aspect: only ratings or only comparisons"
        )
        parser.add_argument("--campaign", default="", metavar="C", help="only judgements of this campaign")
        parser.add_argument(
            "--scale", default="auto", choices=list(SCALES), help="default: ratings interval, verdicts nominal"
        )
        parser.add_argument(
            "--ratings", default="raw", choices=list(RATINGS),
            help="as given, z-scores per rater (z-shrunk: shrunk towards all raters), or ranks within item and rater",
        )  # fmt: skip
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")

    def make_query(self, project: Project, options: dict[str, Any]) -> Query:
        query = parse_query(AgreementQuery, options)
        if query.aspect:
            from scoring.selectors.aspects import choose_judged_way

            query = AgreementQuery(**{**vars(query), "judged": choose_judged_way(project, query).judged})
        return query
