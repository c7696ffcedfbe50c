"""`meta`: the leaderboard of evaluators: how well each follows people's ratings or comparisons."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from scoring.boards.choices import (
    COMPARED,
    EARLIER,
    GROUPINGS,
    LEVELS,
    PEOPLE,
    RATINGS,
    SUBSETS,
    TESTS,
    UNDEFINED,
)
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.references.query import EnhancedQuery
from scoring.boards.registry import list_flagged
from scoring.boards.render.console import as_text
from scoring.selectors.leaderboards import parse_query
from scoring.services.leaderboards import get_leaderboard


class Command(commands.Command):
    help = "Leaderboard of evaluators: correlation with people's ratings or comparisons, with intervals."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="default: the first one that was rated")
        parser.add_argument("--level", choices=list(LEVELS), help="default: segment; of comparisons system")
        parser.add_argument("--grouping", default="none", choices=list(GROUPINGS))
        parser.add_argument(
            "--undefined", default="drop", choices=list(UNDEFINED),
            help="groups in which an evaluator's scores are all equal: left out, or counted as 0",
        )  # fmt: skip
        parser.add_argument("--systems", default="all", choices=list(SUBSETS))
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")
        parser.add_argument(
            "--references", default=["original"], nargs="+", metavar="SET",
            help="the reference set; several are compared side by side, each with the first",
        )  # fmt: skip
        parser.add_argument(
            "--people", choices=list(PEOPLE),
            help="what evaluators are compared with: ratings, or the systems' values that comparisons give (default: "
            "ratings, where there are only comparisons win rate)",
        )  # fmt: skip
        parser.add_argument(
            "--evaluators", default=[], nargs="+", metavar="EVALUATOR",
            help="compare only these: no other makes a row, is tested or leaves out what it learned from, sentinels no "
            "less than others (default: all)",
        )  # fmt: skip
        parser.add_argument("--ratings", default="raw", choices=list(RATINGS))
        parser.add_argument(
            "--coefficient", default="pearson", choices=list(COMPARED), help="what evaluators are tested and ordered by"
        )
        parser.add_argument(
            "--test", default="permutation", choices=list(TESTS),
            type=lambda name: {EARLIER: "permutation"}.get(name, name),
            help="adjusted by Holm over all pairs; permutation exchanges whole systems at the system level, groups of "
            "items at the others",
        )  # fmt: skip

        boards = parser.add_mutually_exclusive_group()
        for board in list_flagged():
            value: dict[str, Any] = {"action": "store_const", "const": ""}
            if board.query.flag_value:
                value = {"nargs": "?", "const": "", "metavar": board.query.flag_value.upper()}
            boards.add_argument(f"--{board.kind}", default=None, help=board.query.flag_help, **value)

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        for board in list_flagged():
            if (value := options[board.kind]) is not None:
                given = {**options, "references": options["references"][0]}
                given |= {board.query.flag_value: value} if board.query.flag_value else {}
                query = parse_query(board.query, given, project)
                stored = get_leaderboard(project=project, query=query)
                return {**stored.table, "computed_at": stored.computed_at.isoformat()}
        several = len(options["references"]) > 1
        if several and options["people"] not in (None, "ratings"):
            raise commands.WrongUsage("One reference set at a time with --people: name one after --references.")
        options["references"] = ",".join(options["references"])
        query = parse_query(EnhancedQuery if several else EvaluatorsQuery, options, project)
        board = get_leaderboard(project=project, query=query)
        return {**board.table, "computed_at": board.computed_at.isoformat()}

    def show(self, found: dict[str, Any]) -> None:
        self.stdout.write(as_text(found))
