"""`select_references`: select references with a trained ream into a named reference set."""

from __future__ import annotations

from typing import Any

from scoring.management.job_command import JobCommand


class Command(JobCommand):
    kind = "select-references"
    required = ("into",)
    help = "Select references automatically (REAM) into a named reference set."

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
