"""`systems`: the leaderboard of systems by human judgements or by an evaluator."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.accounts.models import Project
from scoring.boards.base import Query
from scoring.boards.choices import ASSISTANT, COVARIATES, METHODS, PER, RATINGS, SUBSETS, TARGETS, WEIGHTS
from scoring.boards.systems.query import SystemsQuery
from scoring.management.board_command import BoardCommand
from scoring.selectors.leaderboards import parse_query


class Command(BoardCommand):
    help = "Leaderboard of systems by human ratings or comparisons, or by an evaluator."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="default: the first one that was judged")
        parser.add_argument(
            "--method", choices=list(METHODS), help="default: mean rating; win rate if there are only comparisons"
        )
        parser.add_argument("--ratings", default="raw", choices=list(RATINGS))
        parser.add_argument("--systems", default="all", choices=list(SUBSETS))
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")
        parser.add_argument("--campaign", default="", metavar="SLUG", help="only judgements of this campaign")
        parser.add_argument(
            "--weights", default="none", choices=list(WEIGHTS),
            help="propensity: weight comparisons of adaptively chosen pairs by 1 / the probability of their pair",
        )  # fmt: skip
        parser.add_argument(
            "--covariates", default="none", choices=list(COVARIATES),
            help="for bradley-terry, davidson and rao-kupper: covariates of the model besides the systems",
        )  # fmt: skip
        parser.add_argument("--per", default="judgement", choices=list(PER), help="for m1: the unit that is counted")
        parser.add_argument(
            "--by", default="", metavar="EVALUATOR",
            help="rank by an evaluator's scores instead; with --method glicko2 by the games of the command `games`",
        )  # fmt: skip
        parser.add_argument(
            "--assist", default="", nargs="?", const=ASSISTANT, metavar="EVALUATOR",
            help="narrow the intervals of human judgements by an evaluator's scores of all outputs; without a name by "
            f"{ASSISTANT}, which is fitted again while people judge",
        )  # fmt: skip
        parser.add_argument(
            "--target", default="items-like-these", choices=list(TARGETS),
            help="with --assist: what the intervals are about",
        )  # fmt: skip
        parser.add_argument(
            "--references", default="original", metavar="SET", help="with --by or --assist: the reference set"
        )

    def make_query(self, project: Project, options: dict[str, Any]) -> Query:
        return parse_query(SystemsQuery, options, project)
