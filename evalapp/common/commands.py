"""What every command shares: `--json`, one JSON object on stdout whatever happens, domain errors as messages with exit
1, wrong usage and names of what does not exist as exit 2, places that may not be used as a message, a quiet end when
nobody reads on (`| head`), and finding people and projects by name."""

from __future__ import annotations

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
from .outages import explain

#: What a shell reports of a program whose reader went away: 128 and the number of SIGPIPE.
NO_READER = 141
#: What is wrong with a place somebody named, or with the rights of this user there.
_PLACES = frozenset(
    [
        errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG,
        errno.ELOOP,
    ]
)  # fmt: skip


class WrongUsage(BadInput):
    """Arguments that the command itself refuses: exit 2."""


class Command(BaseCommand):
    """A door: parse, call, print. Subclasses write `work(**options) -> dict` and `show(result)`; a member
    `exit` of the result becomes the exit status (1: the work failed)."""

    #: Faults with a field are about the arguments, which were refused before any work began: exit 2, whether they are
    #: wrong of themselves or for the data that is there. Of a command that reads a file they are about that: exit 1.
    fields_are_arguments = True

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> ArgumentParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--json", action="store_true", help="Print one JSON object on stdout and nothing else.")
        self._tell_misuse(parser)
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        self._as_json = "--json" in argv[2:]
        super().run_from_argv(argv)

    def _tell_misuse(self, parser: ArgumentParser) -> None:
        """What argparse refuses is an object on stdout, too, where one was asked for."""
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
                    self._tell_misuse(below)

    def work(self, *args: Any, **options: Any) -> dict[str, Any]:
        raise NotImplementedError(type(self).__name__)

    def show(self, result: dict[str, Any]) -> None:
        """Print the result for people; only called without --json."""

    def say(self, text: str) -> None:
        """Progress: to stderr, so that stdout stays the result."""
        try:
            self.stderr.write(text, self.style.HTTP_INFO if self.stderr.isatty() else None)
            self.stderr.flush()
        except BrokenPipeError:
            _to_nowhere(self.stderr)  # the work goes on, its progress is for nobody

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = self.work(**options)
        except EvalappError as error:
            self._fail(error, options)
        except (DatabaseTrouble, OSError) as error:
            if (outage := explain(error) or _about_a_place(error)) is None:
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
        # What does not exist was named in the arguments; what goes missing during a run is told by the run.
        code = 2 if isinstance(error, WrongUsage | NotThere) or self._is_about_arguments(error) else 1
        if options["json"]:
            with self.reading(code):
                self._print_error(error)
        told = [f"{fault.field}: {fault}" if fault.field and not fault.file else str(fault) for fault in error.faults]
        # A single fault is often the message itself.
        faults = "".join(f"\n  {line}" for line in told[:50] if line != error.detail)
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
        """What is printed meanwhile may be for a reader that has gone; then the command ends without a word, with
        `code` or, where that is 0, as SIGPIPE would end it."""
        try:
            yield
            self.stdout.flush()
        except BrokenPipeError:
            _to_nowhere(self.stdout)
            sys.exit(code or NO_READER)


def _about_a_place(error: Exception) -> EvalappError | None:
    """A file or folder that may not be read or written, or is none: the message names it, no trace is shown."""
    if not isinstance(error, OSError) or error.errno not in _PLACES or error.filename is None:
        return None
    return EvalappError(f"{error.filename}: {error.strerror}. Name another place, or change the rights of this one.")


def _to_nowhere(stream: Any) -> None:
    """What is still buffered goes nowhere, so that Python does not complain of it at its end."""
    try:
        place = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return  # no file behind it
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, place)
    os.close(nowhere)


def _nearest(name: str, there: Iterable[str]) -> str:
    near = difflib.get_close_matches(name.lower(), there, n=3, cutoff=0.5)
    return f" Did you mean {', '.join(near)}?" if near else ""


def find_project(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        slugs = list(Project.objects.order_by("slug").values_list("slug", flat=True))
        there = ", ".join(slugs[:20]) or "none yet"
        raise NotThere(f"There is no project “{slug}”.{_nearest(slug, slugs)} There are: {there}.")
    return project


def find_user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise NotThere(f"There is no user “{name}”. Make one with: manage.py createowner {name}")
    return user
