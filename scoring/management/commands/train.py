"""`train`: train an evaluator on a project, after a dry check of data and time."""

from __future__ import annotations

import shlex
from typing import Any

from django.core.management.base import CommandParser

from annotation.models.data import ORIGINAL
from evalapp.common import commands
from evalapp.common.models import Run
from scoring.management.following import add_set, add_where, see_through
from scoring.services.training import LISTS, RATINGS, TrainingOptions, check_name, plan_params, start_training


class Command(commands.Command):
    help = "Train an evaluator on the data of a project."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", help="a name that `manage.py evaluators` lists as trained")
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--aspect", default="", help="what it learns to judge, where people judged several things")
        parser.add_argument("--profile", default="", choices=["paper", "recommended"], help="default: recommended")
        parser.add_argument("--encoder", default="", metavar="NAME", help="name or folder; default: what is installed")
        parser.add_argument("--references", default=ORIGINAL, metavar="SET", help="the reference set")
        parser.add_argument("--ratings", default="", choices=RATINGS, help="how raters are made comparable")
        parser.add_argument(
            "--folds",
            type=int,
            default=None,
            metavar="N",
            help="models of a cross-fit; 1: one model, split 80/10/10",
        )
        parser.add_argument("--seed", type=int, default=13, metavar="N")
        parser.add_argument("--name", default="", help="what it is called in the project; default: EVALUATOR-1, ...")
        for name in LISTS:
            noun = name[:-1]
            parser.add_argument(
                f"--{noun}", action="append", default=[], dest=name, metavar=noun.upper(),
                help=f"only judgements and texts of this {noun}; may be repeated",
            )  # fmt: skip
        parser.add_argument("--apply", action="store_true", help="score every output as soon as it is trained")
        parser.add_argument("--check", action="store_true", help="only check: counts, steps, time; queue nothing")
        add_set(parser)
        add_where(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        from scoring.pipelines.train import check_training

        project = commands.find_project(options["project"])
        lists = {name: tuple(options[name]) for name in LISTS}
        names = ("evaluator", "profile", "encoder", "aspect", "references", "ratings", "folds", "seed", "name", "apply")
        asked: dict[str, Any] = {**{name: options[name] for name in names}, **lists}
        wishes = TrainingOptions(**asked, options=dict(options["settings_given"]))
        params = plan_params(project, wishes, any_encoder=True)
        check_name(project, wishes.name)
        plan = check_training(project, **params)
        if options["check"]:
            return {"plan": plan}
        if options["verbosity"]:
            self._say_plan(plan)
        run = start_training(project=project, wishes=wishes, send=not options["here"], any_encoder=True)
        against = ["--references", options["references"]] if options["references"] != ORIGINAL else []
        self.apply_by = shlex.join(
            ["manage.py", "score", run.params["slug"], "--project", options["project"], *against]
        )
        return {"plan": plan, "slug": run.params["slug"], **see_through(run, options, self.say)}

    def _say_plan(self, plan: dict[str, Any]) -> None:
        for line in _plan_lines(plan):
            self.say(line)

    def show(self, found: dict[str, Any]) -> None:
        if "run" not in found:
            self.stdout.write("\n".join(_plan_lines(found["plan"])))
            return
        if found["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {found['run']} is {found['state']}. Follow it with: manage.py run {found['run']}")
            return
        then = f"Apply it with: {self.apply_by}"
        if "score_run" in found:
            then = f"Run {found['score_run']} applies it."
        self.stdout.write(f"{found['evaluator']} is trained. {then}")
        self.stdout.write(found["signature"])


def _plan_lines(plan: dict[str, Any]) -> list[str]:
    counted = ", ".join(f"{n:,} {noun}" for noun, n in plan["examples"].items())
    models = (
        "1 model" if plan["models"] == 1 else f"{plan['models']} models, each group scored by one that did not see it"
    )
    time = f"time: {plan['time']}"
    return [f"{models}: {counted}; {plan['steps']:,} steps; {time}.", *(f"Note: {note}" for note in plan["notes"])]
