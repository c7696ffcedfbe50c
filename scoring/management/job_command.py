"""Base class of the commands that start a run with the options that its kind declares."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import CommandParser

from evalapp.common.commands import find_project
from evalapp.common.jobs import get_job
from evalapp.common.models import Run
from evalapp.common.run_commands import RunCommand, add_options, read_options


class JobCommand(RunCommand):
    """Subclasses name the `kind` of run. They may add some of its options themselves (`own`) in `add_first`, make
    others `required`, and give the service `more` arguments."""

    kind: ClassVar[str]
    own: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[tuple[str, ...]] = ()
    more: ClassVar[dict[str, Any]] = {}
    #: The help of the argument `evaluator`, if it comes first and the project is an option.
    evaluator_help: ClassVar[str] = ""

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_first(parser)
        own = (*self.own, "evaluator") if self.evaluator_help else self.own
        add_options(parser, get_job(self.kind).load_params(), skip=own, required=self.required)
        self.add_run_arguments(parser)

    def add_first(self, parser: CommandParser) -> None:
        """Add the arguments before the options of the run."""
        if self.evaluator_help:
            parser.add_argument("evaluator", help=self.evaluator_help)
            parser.add_argument("--project", required=True, metavar="SLUG")
        else:
            parser.add_argument("slug", help="the project")

    def start(self, *, send: bool, **options: Any) -> Run:
        job = get_job(self.kind)
        project = find_project(options["project" if self.evaluator_help else "slug"])
        given = read_options(job.load_params(), options)
        run: Run = job.load_request()(project=project, options=given, send=send, **self.more)
        return run
