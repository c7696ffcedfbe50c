"""`hub`: send a trained evaluator to the Hugging Face hub, or fetch one from it."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from evalapp.common import commands
from evalapp.common.errors import EvalappError, NotThere
from evalapp.hub_access import allow_access

from ...models import Evaluator
from ...selectors.training import artefact_folder


class Command(commands.Command):
    help = (
        "Send a trained evaluator to the Hugging Face hub, or fetch one into a folder. Log in before with `hf auth "
        "login`, or set HF_TOKEN."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        push = actions.add_parser("push", help="send an evaluator; a new model is private")
        push.add_argument("evaluator", metavar="EVALUATOR", help="a folder, or with --project an evaluator's name")
        push.add_argument("name", metavar="ORGANISATION/MODEL")
        push.add_argument("--project", default="", metavar="SLUG")
        push.add_argument("--public", action="store_true", help="a new model is public; it contains training texts")
        push.add_argument("--licence", default="", metavar="ID", help="for example apache-2.0")
        push.add_argument("--dataset", action="append", default=[], metavar="NAME", help="a dataset on the hub")
        push.add_argument("--language", action="append", default=[], metavar="CODE", help="for example en")
        pull = actions.add_parser("pull", help="fetch an evaluator and check it; its folder can be loaded or uploaded")
        pull.add_argument("name", metavar="ORGANISATION/MODEL")
        pull.add_argument("folder", type=Path, metavar="FOLDER", help="a new folder")
        pull.add_argument("--revision", default=None, metavar="NAME", help="a branch, tag or commit")

    def work(self, **options: Any) -> dict[str, Any]:
        from scoring.ml import ScoringError

        try:
            with allow_access():
                return _push(options) if options["action"] == "push" else _pull(options)
        except ScoringError as error:
            raise EvalappError(str(error)) from error

    def show(self, result: dict[str, Any]) -> None:
        self.stdout.write(f"{result['signature']}\n{result.get('url') or result['folder']}")


def _push(options: dict[str, Any]) -> dict[str, Any]:
    from scoring.ml import from_pretrained
    from scoring.ml.trained import LearnedEvaluator

    name, folder = options["evaluator"], Path(options["evaluator"])
    if options["project"]:
        project = commands.find_project(options["project"])
        row = Evaluator.objects.filter(project=project, slug=name, kind=Evaluator.Kind.TRAINED).first()
        if row is None:
            raise NotThere(f"The project {project.slug} has no trained evaluator “{name}”.")
        folder = artefact_folder(row)
    elif not folder.is_dir():
        raise commands.WrongUsage(f"{folder} is not a folder. For an evaluator of a project add --project.")
    evaluator = from_pretrained(folder)
    if not isinstance(evaluator, LearnedEvaluator):
        raise EvalappError(f"{evaluator.name} is not trained: anyone can load it by its name.")
    url = evaluator.push_to_hub(
        options["name"],
        private=not options["public"],
        licence=options["licence"],
        datasets=options["dataset"],
        languages=options["language"],
    )
    return {"url": url, "signature": evaluator.signature}


def _pull(options: dict[str, Any]) -> dict[str, Any]:
    from scoring.ml import load
    from scoring.ml.hub import fetch

    target = options["folder"]
    if target.exists():
        raise commands.WrongUsage(f"{target} exists. Name a new folder.")
    cached = fetch(options["name"], revision=options["revision"])
    evaluator = load(cached)
    # The cache has links to its files.
    shutil.copytree(cached, target, symlinks=False)
    return {"folder": str(target), "signature": evaluator.signature}
