"""Base class of all commands. With `--json` a command always prints one JSON object. Domain errors and unusable paths
are messages with exit status 1; wrong usage and names that do not exist have 2. A closed pipe (`| head`) ends a command
silently. Also finds users and projects by name."""

import difflib
import errno
import json
import os
import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseTrouble

from evalapp.accounts.models import Project, User

from .errors import BadInput, EvalappError, NotThere
from .models import Run
from .outages import explain

#: Exit status of a program whose output is closed: 128 plus the number of SIGPIPE.
NO_READER = 141
#: Errors about a path that the user named, or its permissions.
_PATH_ERRORS = frozenset(
    [
        errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG,
        errno.ELOOP,
    ]
)  # fmt: skip


class WrongUsage(BadInput):
    """Arguments that the command refuses: exit status 2."""


class Command(BaseCommand):
    """Parses arguments, calls, prints. Subclasses implement `work(**options) -> dict` and `show(result)`; the item
    `exit` of the result becomes the exit status (1: the work failed)."""

    #: Whether faults with a field are about the arguments (exit status 2). For commands that read a file, they are
    #: about the file (1).
    fields_are_arguments = True

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> ArgumentParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--json", action="store_true", help="Print one JSON object on stdout and nothing else.")
        self._report_misuse(parser)
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        self._as_json = "--json" in argv[2:]
        super().run_from_argv(argv)

    def _report_misuse(self, parser: ArgumentParser) -> None:
        """With `--json`, print the errors of argparse as JSON."""
        refuse = parser.error

        def error(message: str) -> NoReturn:
            if getattr(self, "_as_json", False):
                with self.reading(2):
                    self._print_error(WrongUsage(message))
            refuse(message)

        parser.error = error  # type: ignore[method-assign]
        for action in parser._actions:
            if isinstance(action, _SubParsersAction):
                for below in action.choices.values():
                    self._report_misuse(below)

    def work(self, *args: Any, **options: Any) -> dict[str, Any]:
        raise NotImplementedError(type(self).__name__)

    def show(self, result: dict[str, Any]) -> None:
        """Print the result for people; only called without --json."""

    def say(self, text: str) -> None:
        """Print progress to stderr; stdout is for the result."""
        try:
            self.stderr.write(text, self.style.HTTP_INFO if self.stderr.isatty() else None)
            self.stderr.flush()
        except BrokenPipeError:
            _discard(self.stderr)  # continue without progress messages

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = self.work(**options)
        except EvalappError as error:
            self._fail(error, options)
        except (DatabaseTrouble, OSError) as error:
            if (outage := explain(error) or _explain_path(error)) is None:
                raise
            self._fail(outage, options)
        except KeyboardInterrupt:
            self.say("stopped")
            sys.exit(130)
        code = result.pop("exit", 0)
        with self.reading(code):
            if options["json"]:
                self.stdout.write(json.dumps(result, default=str))
            else:
                self.show(result)
        if code:
            sys.exit(code)

    def _fail(self, error: EvalappError, options: dict[str, Any]) -> NoReturn:
        # NotThere: the arguments name an object that does not exist. Objects that disappear later are errors of runs.
        code = 2 if isinstance(error, WrongUsage | NotThere) or self._is_about_arguments(error) else 1
        if options["json"]:
            with self.reading(code):
                self._print_error(error)
        lines = [f"{fault.field}: {fault}" if fault.field and not fault.file else str(fault) for fault in error.faults]
        # A single fault is often the message itself.
        faults = "".join(f"\n  {line}" for line in lines[:50] if line != error.detail)
        more = f"\n  and {len(error.faults) - 50} more" if len(error.faults) > 50 else ""
        raise CommandError(f"{error.detail}{faults}{more}", returncode=code) from error

    def _print_error(self, error: EvalappError) -> None:
        body = {"error": error.code, "detail": error.detail, "errors": [f.as_dict() for f in error.faults]}
        self.stdout.write(json.dumps(body, default=str))

    def _is_about_arguments(self, error: EvalappError) -> bool:
        if not self.fields_are_arguments or not isinstance(error, BadInput) or not error.faults:
            return False
        return all(fault.field and not fault.file for fault in error.faults)

    @contextmanager
    def reading(self, code: int) -> Iterator[None]:
        """Print in this block. If stdout is closed, exit silently with `code`, or like SIGPIPE if that is 0."""
        try:
            yield
            self.stdout.flush()
        except BrokenPipeError:
            _discard(self.stdout)
            sys.exit(code or NO_READER)


def _explain_path(error: Exception) -> EvalappError | None:
    """Return an error for a path that cannot be read or written."""
    if not isinstance(error, OSError) or error.errno not in _PATH_ERRORS or error.filename is None:
        return None
    way_out = "Choose another path, or change the permissions of this one."
    return EvalappError(f"{error.filename}: {error.strerror}. {way_out}")


def _discard(stream: Any) -> None:
    """Redirect a closed stream to /dev/null, so that Python does not fail when it flushes the buffer at exit."""
    try:
        target = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return  # not a file
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, target)
    os.close(null)


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    return f" Did you mean {', '.join(near)}?" if near else ""


def find_project(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        slugs = list(Project.objects.order_by("slug").values_list("slug", flat=True))
        known = ", ".join(slugs[:20]) or "none yet"
        raise NotThere(f"There is no project “{slug}”.{_suggest(slug, slugs)} Projects: {known}.")
    return project


def find_run(number: int) -> Run:
    run = Run.objects.select_related("project", "created_by").filter(pk=number).first()
    if run is None:
        raise NotThere(f"There is no run {number}. See: evalapp runs")
    return run


def find_user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise NotThere(f"There is no user “{name}”. Create one with: evalapp createowner {name}")
    return user
