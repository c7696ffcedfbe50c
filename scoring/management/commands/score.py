"""`score`: apply an evaluator to every output that has no score with the same signature, or score text files."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from annotation.models.data import ORIGINAL
from evalapp.common.commands import WrongUsage, find_project
from evalapp.common.models import Run
from scoring.management.job_command import JobCommand
from scoring.ml.score_files.command import add_file_arguments, score_files
from scoring.services.several import plan_scores


class Command(JobCommand):
    kind = "score"
    more = {"any_encoder": True}
    evaluator_help = "a name that `evalapp evaluators` lists, or of a trained evaluator; several have default options"
    help = (
        "Apply an evaluator to every output not yet scored with the same signature. Or, without project or database, "
        "score text files with a line per segment (-i)."
    )

    def add_first(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", nargs="*", help=self.evaluator_help)
        parser.add_argument("--project", metavar="SLUG", help="the project; not with -i")
        add_file_arguments(parser.add_argument_group("text files"))

    def execute(self, *args: Any, **options: Any) -> None:  # type: ignore[override]
        if options["input"] is None or options["project"] is not None:
            super().execute(*args, **options)
        elif status := score_files(options, options.get("stdout") or sys.stdout, options.get("stderr") or sys.stderr):
            sys.exit(status)

    def work(self, *args: Any, evaluator: list[str], **options: Any) -> dict[str, Any]:
        if not evaluator or options["project"] is None or options["input"] is not None:
            raise WrongUsage(
                "Name evaluators and a project (score length --project SLUG), or text files (score -i system.txt "
                "-r reference.txt)."
            )
        if len(evaluator) == 1:
            return super().work(*args, evaluator=evaluator[0], **options)
        if options["options"]:
            raise WrongUsage("--set is for a single evaluator: several have their default options.")
        references = options["references"] or ORIGINAL
        plans = plan_scores(project=find_project(options["project"]), evaluators=evaluator, references=references)
        for plan in plans:
            if not plan.is_needed:
                self.say(f"{plan.evaluator}: {plan.outcome}{f': {plan.why}' if plan.why else ''}")
        needed = [plan.evaluator for plan in plans if plan.is_needed]
        started = [self.start(send=not options["here"], evaluator=name, **options) for name in needed]
        runs = [self.follow(run, options) for run in started]
        return {"runs": runs, "plan": [plan.as_dict() for plan in plans]}

    def show(self, result: dict[str, Any]) -> None:
        for one in result.get("runs", [result]):
            super().show(one)

    def start(self, *, send: bool, **options: Any) -> Run:
        run = super().start(send=send, **options)
        for line in run.log.all() if options["here"] else ():
            self.say(line.text)  # a warning about the texts, which following the run would show
        return run

    def show_result(self, result: dict[str, Any]) -> None:
        if "scored" not in result:  # a combination, a judge and the assistant compute all scores again
            self.stdout.write(f"{result['evaluator']}: {result.get('outputs', 0):,} outputs scored.")
            self.stdout.write(result.get("signature", ""))
            return
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
