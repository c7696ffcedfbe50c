"""`score`: apply an evaluator to every output that has no score with the same signature."""

from __future__ import annotations

from typing import Any

from evalapp.common.models import Run
from scoring.management.job_command import JobCommand


class Command(JobCommand):
    kind = "score"
    more = {"any_encoder": True}
    evaluator_help = "a name that `manage.py evaluators` lists, or of a trained evaluator"
    help = "Apply an evaluator to every output not yet scored with the same signature."

    def start(self, *, send: bool, **options: Any) -> Run:
        run = super().start(send=send, **options)
        for line in run.log.all() if options["here"] else ():
            self.say(line.text)  # a warning about the texts, which following the run would show
        return run

    def show_result(self, result: dict[str, Any]) -> None:
        self.stdout.write(
            f"{result['evaluator']}: {result['scored']:,} outputs scored, {result['kept']:,} unchanged, "
            f"{result['undefined']:,} undefined, {result['empty']:,} empty, {result['truncated']:,} truncated."
        )
        if result.get("unknown"):
            self.stdout.write(f"  {result['unknown']:,} have words that the encoder does not know")
        for reason, count in result.get("why_undefined", {}).items():
            self.stdout.write(f"  {count:,} undefined: {reason}")
        if result.get("in_training"):
            self.stdout.write(
                f"  {result['in_training']:,} belong to groups it learned from: marked in downloads, left out where "
                "evaluators are compared"
            )
        self.stdout.write(result["signature"])
