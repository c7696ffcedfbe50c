"""`power`: the number of judgements that detects an effect."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from scoring.boards.render.console import as_lines
from scoring.selectors.planning import EFFECTS, SIDES, TESTS, PowerQuestion, answer_plan, answer_power, read_question
from scoring.services.planning import get_pilot

SIZES = ("items", "ratings", "judgements")


class Command(commands.Command):
    help = "The number of judgements that detects an effect; a project with judgements serves as pilot."

    def add_arguments(self, parser: CommandParser) -> None:
        effects = "; ".join(f"{test}: {words}" for test, words in EFFECTS.items())
        parser.add_argument("slug", nargs="?", default="", help="a project whose judgements are the pilot")
        parser.add_argument("--effect", required=True, metavar="X", help=effects)
        parser.add_argument("--test", default="preference", choices=list(TESTS))
        parser.add_argument("--power", type=float, default=0.8, help="probability of detecting the effect (default .8)")
        parser.add_argument("--alpha", type=float, default=0.05, help="probability of a false positive (default .05)")
        parser.add_argument(
            "--sides", type=int, choices=list(SIDES), help="default: 1 for williams (in tables letters are 2), else 2"
        )
        parser.add_argument("--ties", type=float, help="share of ties; default: the share in the project, or none")
        parser.add_argument(
            "--rho", type=float,
            help="correlation of an evaluator's scores with the judgements within systems, if it assists them",
        )  # fmt: skip
        parser.add_argument("--aspect", default="", metavar="A", help="default: the first one that was judged")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"]) if options["slug"] else None
        question: PowerQuestion = read_question(options)
        if question.test == "rating":
            return answer_plan(question, None if project is None else get_pilot(project, question.aspect))
        return answer_power(question, project)

    def show(self, result: dict[str, Any]) -> None:
        self.stdout.write("\n".join(result["words"]))
        if result["test"] == "rating":
            rows = [[row["name"], *(f"{row[k]:,}" for k in SIZES), f"{row['power']:.2f}"] for row in result["designs"]]
            self.stdout.write(
                "\n".join(as_lines(["design", "items", "ratings per output", "judgements", "power"], rows))
            )
            return
        rows = [[f"{row['n']:,}", f"{row['power']:.2f}"] for row in result["curve"]]
        self.stdout.write("\n".join(as_lines([result["unit"], "power"], rows, left=())))
