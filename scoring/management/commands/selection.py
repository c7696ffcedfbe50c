"""`selection`: the checkpoint or variant that each evaluator selects, and how people judged it."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.run_commands import key_value
from scoring.boards.render.console import as_lines, interval
from scoring.management.job_command import JobCommand
from scoring.selectors.reports import group_by_kind


def variant(text: str) -> tuple[str, list[str]]:
    """Parse `name=system,system,...`."""
    name, value = key_value(text)
    systems = [part.strip() for part in value.split(",") if part.strip()]
    if len(systems) < 2:
        raise argparse.ArgumentTypeError(f"name at least two systems, not {text!r}")
    return name, systems


class Command(JobCommand):
    kind = "selection"
    own = ("variants",)
    help = "The checkpoint or variant that each evaluator selects, how often it is people's best, and its human score."

    def add_first(self, parser: CommandParser) -> None:
        super().add_first(parser)
        parser.add_argument(
            "--variants", action="append", default=[], type=variant, metavar="NAME=SYSTEM,SYSTEM,...",
            help="systems that are variants of each other; may be repeated; default: `variant_of` in their meta",
        )  # fmt: skip

    def show_result(self, result: dict[str, Any]) -> None:
        people = "mean rating" if result["judged_by"] == "ratings" else "share of comparisons won"
        self.stdout.write(f"Selections in {result['project']}, on {result['n_items']:,} items; people: {people}")
        if result["n_learned"]:
            self.stdout.write(f"{result['n_learned']:,} items are left out: an evaluator was trained on them.")
        if result["simulated"]:
            self.stdout.write("These figures include simulated judgements.")
        for table in group_by_kind(result):
            runs = table["runs"]
            lines = [
                [row["evaluator"], f"{row['wins']} of {row['runs']}", interval(row["human"])] for row in table["rows"]
            ]
            lines.append(["(people's best)", f"{runs} of {runs}", f"{table['best']:.3f}"])
            lines.append(["(chance level)", f"{table['chance_wins']:.1f} of {runs}", f"{table['chance']:.3f}"])
            head = [table["kind"], "people's best", f"{result['aspect']} of the selection"]
            self.stdout.write("\n".join(as_lines(head, lines)))
