"""`select_references`: select references with a trained ream into a named reference set."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.commands import find_project
from evalapp.common.models import Run
from evalapp.common.run_commands import RunCommand, add_options, read_options
from scoring.services.reference_selection import ReferenceSelection, start_reference_selection


class Command(RunCommand):
    help = "Select references automatically (REAM) into a named reference set."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        add_options(parser, ReferenceSelection, required=("into",))
        self.add_run_arguments(parser)

    def start(self, *, send: bool, **options: Any) -> Run:
        return start_reference_selection(
            project=find_project(options["slug"]), options=read_options(ReferenceSelection, options), send=send
        )

    def show_result(self, result: dict[str, Any]) -> None:
        means = [result["mean_before"], result["mean_after"]]
        gain = "" if None in means else f", predicted reliability {means[0]:.3f} -> {means[1]:.3f}"
        self.stdout.write(
            f"{result['references']}: {result['n_references']:,} references of {result['items']:,} items, "
            f"{result['added']:,} selected from {result['looked_at']:,} candidates{gain}."
        )
        controls = [name for name in result["sets"] if name != result["references"]]
        if controls:
            self.stdout.write(f"Controls: {', '.join(controls)}.")
