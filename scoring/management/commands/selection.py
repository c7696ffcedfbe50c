"""`selection`: which checkpoint or variant each evaluator would pick, and what people think of the picks."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandParser

from annotation.models.data import ORIGINAL
from evalapp.common import commands
from evalapp.common.models import Run
from scoring.boards.render.console import as_lines, interval
from scoring.management.following import add_where, key_value, see_through
from scoring.selectors.selecting import group_by_kind
from scoring.services.selecting import RUNS, SelectionWishes, start_selection


def variant(text: str) -> tuple[str, list[str]]:
    """`name=system,system,...` of a command line."""
    name, systems = key_value(text)
    found = [part.strip() for part in systems.split(",") if part.strip()]
    if len(found) < 2:
        raise argparse.ArgumentTypeError(f"name two systems at least, not {text!r}")
    return name, found


class Command(commands.Command):
    help = "Which checkpoint or variant each evaluator would pick, how often people's best, and their score of it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="default: the first one that was judged")
        parser.add_argument(
            "--evaluator", action="append", default=[], dest="evaluators", metavar="EVALUATOR",
            help="may be repeated; default: all that were applied",
        )  # fmt: skip
        parser.add_argument(
            "--variants", action="append", default=[], type=variant, metavar="NAME=SYSTEM,SYSTEM,...",
            help="systems that are variants of one; may be repeated; default: what their meta says (variant_of)",
        )  # fmt: skip
        parser.add_argument("--references", default=ORIGINAL, metavar="SET", help="the reference set")
        parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help="parts of the items (default 10)")
        parser.add_argument("--seed", type=int, default=13, metavar="N", help="parts them")
        add_where(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        wishes = SelectionWishes(
            options["aspect"], options["evaluators"], dict(options["variants"]), options["references"],
            options["runs"], options["seed"],
        )  # fmt: skip
        project = commands.find_project(options["slug"])
        run = start_selection(project=project, wishes=wishes, send=not options["here"])
        return see_through(run, options, self.say)

    def show(self, found: dict[str, Any]) -> None:
        if found["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {found['run']} is {found['state']}. Follow it with: manage.py run {found['run']}")
            return
        people = "mean rating" if found["judged_by"] == "ratings" else "share of comparisons won"
        self.stdout.write(f"Choices in {found['project']}, on {found['n_items']:,} items; people: {people}")
        if found["n_learned"]:
            self.stdout.write(f"{found['n_learned']:,} items are left out: one of these evaluators learned from them.")
        if found["simulated"]:
            self.stdout.write("Simulated judgements are among these figures.")
        for table in group_by_kind(found):
            runs = table["runs"]
            lines = [
                [row["evaluator"], f"{row['wins']} of {row['runs']}", interval(row["human"])] for row in table["rows"]
            ]
            lines.append(["(people's best)", f"{runs} of {runs}", f"{table['best']:.3f}"])
            lines.append(["(chance level)", f"{table['chance_wins']:.1f} of {runs}", f"{table['chance']:.3f}"])
            head = [table["kind"], "people's best", f"{found['aspect']} of the picks"]
            self.stdout.write("\n".join(as_lines(head, lines)))
