"""`train`: train an evaluator on a project, after a dry check of data and time."""

from __future__ import annotations

import shlex
from typing import Any

from django.core.management.base import CommandParser

from annotation.models.data import ORIGINAL
from evalapp.common.commands import find_project
from evalapp.common.run_commands import read_options
from scoring.management.job_command import JobCommand
from scoring.pipelines.check_verdict import NOT_ENOUGH
from scoring.services.training import TrainingOptions, check_name, plan_params, start_training


class Command(JobCommand):
    kind = "train"
    evaluator_help = "a name that `evalapp evaluators` lists as trained"
    help = "Train an evaluator on the data of a project."
    own = ("projects",)

    def add_first(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", help=self.evaluator_help)
        parser.add_argument(
            "--project", action="append", required=True, metavar="SLUG",
            help="the project; repeated: further projects to learn from as well",
        )  # fmt: skip

    def add_run_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="only check counts, steps and time; start nothing")
        super().add_run_arguments(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        from scoring.pipelines.train import NotEnough, check_training

        # `call_command(project="weekend")` gives a text, the command line a list.
        named = options["project"]
        first, *options["projects"] = [named] if isinstance(named, str) else named
        project = find_project(first)
        training = read_options(TrainingOptions, options)
        params = plan_params(project, training, any_encoder=True)
        check_name(project, training.name)
        try:
            plan = check_training(project, **params)
        except NotEnough as error:
            if not options["check"]:
                raise
            return {"plan": {"verdict": {"code": NOT_ENOUGH, "text": error.detail}}, "exit": 1}
        if options["check"]:
            return {"plan": plan}
        if options["verbosity"]:
            for line in _list_plan(plan):
                self.say(line)
        run = start_training(project=project, options=training, send=not options["here"], any_encoder=True)
        slug = run.params["slug"]
        against = ["--references", options["references"]] if options["references"] != ORIGINAL else []
        self.apply_by = shlex.join(["evalapp", "score", slug, "--project", first, *against])
        return {"plan": plan, "slug": slug, **self.follow(run, options)}

    def show(self, result: dict[str, Any]) -> None:
        if "run" in result:
            super().show(result)
        else:
            self.stdout.write("\n".join(_list_plan(result["plan"])))

    def show_result(self, result: dict[str, Any]) -> None:
        then = f"Apply it with: {self.apply_by}"
        if "score_run" in result:
            then = f"Run {result['score_run']} applies it."
        self.stdout.write(f"{result['evaluator']} is trained. {then}")
        self.stdout.write(result["signature"])


def _list_plan(plan: dict[str, Any]) -> list[str]:
    """Return the lines that describe the plan of a training."""
    if "steps" not in plan:
        return [plan["verdict"]["text"]]
    counts = ", ".join(f"{n:,} {noun}" for noun, n in plan["examples"].items())
    models = (
        "1 model" if plan["models"] == 1 else f"{plan['models']} models, each group scored by one that did not see it"
    )
    return [
        f"{models}: {counts}; {plan['steps']:,} steps; time: {plan['time']}.",
        *([plan["verdict"]["text"]] if "verdict" in plan else []),
        *(f"Further project {text}." for text in plan["sets"]),
        *(f"Note: {note}" for note in plan["notes"]),
    ]
