"""`study`: a table as papers print it, from several trainings on a project."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.commands import find_project
from evalapp.common.models import Run
from evalapp.common.run_commands import read_options
from scoring.boards.render.study import FORMATS, as_text
from scoring.management.job_command import JobCommand
from scoring.ml.studies.kinds import KINDS
from scoring.services.studies import StudyOptions, start_check, start_study


class Command(JobCommand):
    kind = "study"
    own = ("study",)
    help = "A table as papers on evaluators print it: seeds, ablations, evaluators side by side, and others."

    def add_first(self, parser: CommandParser) -> None:
        super().add_first(parser)
        kinds = "; ".join(f"{kind.name}: {kind.summary[:1].lower()}{kind.summary[1:-1]}" for kind in KINDS.values())
        parser.add_argument("study", choices=tuple(KINDS), metavar="KIND", help=kinds.replace("%", "%%"))
        parser.add_argument("--check", action="store_true", help="only count trainings and estimate the time")
        parser.add_argument("--as", dest="format", choices=tuple(FORMATS), help="write the tables in this format")

    def start(self, *, send: bool, **options: Any) -> Run:
        project = find_project(options["slug"])
        begin = start_check if options["check"] else start_study
        given = read_options(StudyOptions, options)
        return begin(project=project, options=given, send=send, any_encoder=True)

    def work(self, *args: Any, **options: Any) -> dict[str, Any]:
        self.format = options["format"]
        return super().work(*args, **options)

    def show_result(self, result: dict[str, Any]) -> None:
        if "tables" not in result:
            self.stdout.write(result["text"])
            for label, reason in result["left_out"].items():
                self.stdout.write(f"Left out: {label}. {reason}")
            return
        write = FORMATS[self.format][0] if self.format else as_text
        self.stdout.write(write(result))
