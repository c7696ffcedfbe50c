"""What every command shares: `--json`, one JSON object on stdout, domain errors as messages with exit 1, wrong
usage as exit 2, and finding people and projects by name."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evalapp.accounts.models import Project, User

from .errors import EvalappError


class Command(BaseCommand):
    """A door: parse, call, print. Subclasses write `work(**options) -> dict` and `show(result)`; a member
    `exit` of the result becomes the exit status (1: the work failed)."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> ArgumentParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--json", action="store_true", help="Print one JSON object on stdout and nothing else.")
        return parser

    def work(self, *args: Any, **options: Any) -> dict[str, Any]:
        raise NotImplementedError(type(self).__name__)

    def show(self, result: dict[str, Any]) -> None:
        """Print the result for people; only called without --json."""

    def say(self, text: str) -> None:
        """Progress: to stderr, so that stdout stays the result."""
        self.stderr.write(text, self.style.HTTP_INFO if self.stderr.isatty() else None)
        self.stderr.flush()

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = self.work(**options)
        except EvalappError as error:
            if options["json"]:
                body = {"error": error.code, "detail": error.detail, "errors": [f.as_dict() for f in error.faults]}
                self.stdout.write(json.dumps(body, default=str))
            told = [
                f"{fault.field}: {fault}" if fault.field and not fault.file else str(fault) for fault in error.faults
            ]
            # A single fault is often the message itself.
            faults = "".join(f"\n  {line}" for line in told[:50] if line != error.detail)
            more = f"\n  and {len(error.faults) - 50} more" if len(error.faults) > 50 else ""
            raise CommandError(f"{error.detail}{faults}{more}", returncode=1) from error
        except KeyboardInterrupt:
            self.say("stopped")
            sys.exit(130)
        code = result.pop("exit", 0)
        if options["json"]:
            self.stdout.write(json.dumps(result, default=str))
        else:
            self.show(result)
        if code:
            sys.exit(code)


def find_project(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        there = ", ".join(Project.objects.order_by("slug").values_list("slug", flat=True)[:20]) or "none yet"
        raise EvalappError(f"There is no project “{slug}”. There are: {there}.")
    return project


def find_user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise EvalappError(f"There is no user “{name}”. Make one with: manage.py createowner {name}")
    return user
