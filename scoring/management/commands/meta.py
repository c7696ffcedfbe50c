"""`meta`: the leaderboard of evaluators by agreement with human judgements."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.accounts.models import Project
from evalapp.common import commands
from scoring.boards import choices
from scoring.boards.base import Query
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.references.query import EnhancedQuery
from scoring.boards.registry import list_flagged
from scoring.management.board_command import BoardCommand
from scoring.selectors.leaderboards import parse_query


class Command(BoardCommand):
    help = "Leaderboard of evaluators: correlation with human ratings or comparisons, with intervals."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="default: the first one that was rated")
        parser.add_argument("--level", choices=list(choices.LEVELS), help="default: segment; for comparisons system")
        parser.add_argument("--grouping", default="none", choices=list(choices.GROUPINGS))
        parser.add_argument(
            "--undefined", default="drop", choices=list(choices.UNDEFINED),
            help="groups in which an evaluator's scores are all equal: left out, or counted as 0",
        )  # fmt: skip
        parser.add_argument("--systems", default="all", choices=list(choices.SUBSETS))
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")
        parser.add_argument(
            "--references", default=["original"], nargs="+", metavar="SET",
            help="the reference set; several are compared side by side, each with the first",
        )  # fmt: skip
        parser.add_argument(
            "--people", choices=list(choices.PEOPLE),
            help="the human judgements: ratings, or systems' values from comparisons (default: ratings; win rate if "
            "there are only comparisons)",
        )  # fmt: skip
        parser.add_argument(
            "--evaluators", default=[], nargs="+", metavar="EVALUATOR",
            help="compare only these: others, including sentinels, are neither shown nor tested, and their training "
            "data are not left out (default: all)",
        )  # fmt: skip
        parser.add_argument("--ratings", default="raw", choices=list(choices.RATINGS))
        parser.add_argument(
            "--coefficient", default="pearson", choices=list(choices.COMPARED),
            help="the coefficient for tests and order",
        )  # fmt: skip
        parser.add_argument(
            "--test", default="permutation", choices=list(choices.TESTS),
            type=lambda name: {choices.EARLIER: "permutation"}.get(name, name),
            help="adjusted by Holm over all pairs; permutation exchanges whole systems at the system level, groups of "
            "items at the others",
        )  # fmt: skip

        boards = parser.add_mutually_exclusive_group()
        for board in list_flagged():
            value: dict[str, Any] = {"action": "store_const", "const": ""}
            if board.query.flag_value:
                value = {"nargs": "?", "const": "", "metavar": board.query.flag_value.upper()}
            boards.add_argument(f"--{board.kind}", default=None, help=board.query.flag_help, **value)

    def make_query(self, project: Project, options: dict[str, Any]) -> Query:
        for board in list_flagged():
            if (value := options[board.kind]) is not None:
                values = {**options, "references": options["references"][0]}
                values |= {board.query.flag_value: value} if board.query.flag_value else {}
                return parse_query(board.query, values, project)
        several = len(options["references"]) > 1
        if several and options["people"] not in (None, "ratings"):
            raise commands.WrongUsage("--people allows only one reference set after --references.")
        options["references"] = ",".join(options["references"])
        return parse_query(EnhancedQuery if several else EvaluatorsQuery, options, project)
