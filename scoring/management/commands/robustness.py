"""`robustness`: score the kinds of texts that people wrote under constraints with one evaluator."""

from __future__ import annotations

from typing import Any

from scoring.boards.render.console import as_lines
from scoring.management.job_command import JobCommand

FIGURES = ("score", "mean", "sd")


class Command(JobCommand):
    kind = "robustness"
    more = {"any_encoder": True}
    evaluator_help = "a name that `evalapp evaluators` lists, or of a trained evaluator"
    help = "Scores of an evaluator by kind of text: by machines, and by people under each constraint."

    def show_result(self, result: dict[str, Any]) -> None:
        rows = [
            [row["kind"], row["what"], str(row["n"]), *("-" if row[k] is None else f"{row[k]:.3f}" for k in FIGURES)]
            for row in result["rows"]
        ]
        self.stdout.write(f"{result['evaluator']} by kind of text, each compared with the item's original")
        self.stdout.write("\n".join(as_lines(["kind", "texts", "n", *FIGURES], rows, left=(0, 1))))
        if result["n_in_training"]:
            self.stdout.write(f"{result['n_in_training']} texts belong to groups in its training data.")
        self.stdout.write(result["signature"])
