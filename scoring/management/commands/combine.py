"""`combine`: several evaluators as one, with a name and a row of its own."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from annotation.models.data import ORIGINAL
from evalapp.common import commands
from evalapp.common.models import Run
from scoring.boards.choices import RATINGS
from scoring.boards.render.console import as_lines
from scoring.management.following import add_where, see_through
from scoring.services.combining import METHODS, CombineWishes, start_combination


class Command(commands.Command):
    help = "Combine several evaluators into one: the mean of their z-scores, or weights learned from people's ratings."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("parts", nargs="+", metavar="EVALUATOR", help="two or more evaluators that have scores")
        parser.add_argument("--method", default="mean-z", choices=list(METHODS))
        parser.add_argument("--name", default="", metavar="NAME", help="default: combined-1, combined-2 and so on")
        parser.add_argument(
            "--aspect", default="", metavar="A", help="stacked: the ratings it learns from (default: the first rated)"
        )
        parser.add_argument("--references", default=ORIGINAL, metavar="SET", help="the scores against this set")
        parser.add_argument("--ratings", default="raw", choices=list(RATINGS), help="stacked: ratings as given or not")
        parser.add_argument("--filter", default="", metavar="NAME", help="stacked: without the raters of this filter")
        parser.add_argument(
            "--share", type=float, default=0.5, metavar="X",
            help="stacked: which share of the groups it learns from; it is judged on the others",
        )  # fmt: skip
        parser.add_argument("--seed", type=int, default=13, metavar="N")
        add_where(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        given = {name: options[name] for name in CombineWishes.__dataclass_fields__}
        run = start_combination(
            project=commands.find_project(options["slug"]),
            wishes=CombineWishes(**{**given, "parts": tuple(options["parts"])}),
            send=not options["here"],
        )
        return see_through(run, options, self.say)

    def show(self, found: dict[str, Any]) -> None:
        if found["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {found['run']} is {found['state']}. Follow it with: manage.py run {found['run']}")
            return
        self.stdout.write(
            f"{found['evaluator']}: {found['outputs']:,} outputs scored, {found['undefined']:,} undefined"
            + (f", {found['in_training']:,} of groups it learned from." if found["in_training"] else ".")
        )
        rows = [[part["evaluator"], f"{part['weight']:.4f}"] for part in found["parts"]]
        self.stdout.write("\n".join(as_lines(["part", "weight"], rows)))
        self.stdout.write(found["signature"])
