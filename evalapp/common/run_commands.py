"""Commands that start a run: options from the dataclass of the request, `--here`, `--detach`, following the run."""

import argparse
import re
from collections.abc import Collection, Iterator
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from django.core.management.base import CommandParser

from .commands import Command
from .errors import EvalappError
from .models import Run
from .run_lines import follow_run
from .runner import execute_run

T = TypeVar("T")


def key_value(text: str) -> tuple[str, str]:
    """Parse `key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"write key=value, not {text!r}")
    return key.strip(), value.strip()


def _list_fields(kind: type) -> Iterator[tuple[Field[Any], Any, Any]]:
    """Yield each field with its type, without "or None", and the container of that type, if any."""
    hints = get_type_hints(kind)
    for one in fields(kind):
        hint = hints[one.name]
        if get_origin(hint) is UnionType:
            hint = next(part for part in get_args(hint) if part is not NoneType)
        yield one, hint, get_origin(hint)


def add_options(
    parser: CommandParser, kind: type, *, skip: Collection[str] = (), required: Collection[str] = ()
) -> None:
    """Add an option for each field of a dataclass of run parameters.

    A list is a repeatable option in the singular, an object `--set key=value`. The command adds the fields in `skip`
    itself.
    """
    for one, hint, container in _list_fields(kind):
        if one.name in skip:
            continue
        flag = f"--{one.name.replace('_', '-')}"
        help = one.metadata["help"].rstrip(".").replace("%", "%%")
        # Programs send null or an empty value; on the command line the option is left out.
        help = re.sub(r"\b(null|empty): ", "default: ", help[:1].lower() + help[1:])
        more: dict[str, Any]
        if hint is bool:
            more = {"action": "store_true", "help": help}
        elif container in (tuple, list):
            flag = flag.removesuffix("s")
            more = {"action": "append", "default": [], "metavar": flag[2:].upper(), "help": f"{help}; may be repeated"}
        elif container is not None:
            flag, help = "--set", f"{help}; may be repeated"
            more = {"action": "append", "default": [], "type": key_value, "metavar": "key=value", "help": help}
        else:
            is_required = one.name in required or one.default is MISSING
            default = None if is_required else one.default
            help += "" if default in ("", None) else f" (default: {default})"
            choices = [choice for choice in one.metadata["choices"] if choice]
            more = {"type": hint, "default": default, "required": is_required, "help": help, "choices": choices or None}
            more["metavar"] = None if choices else one.name.upper().replace("_", "-")
        parser.add_argument(flag, dest=one.name, **more)


def read_options(kind: type[T], options: dict[str, Any]) -> T:
    """Return the dataclass with the values of the command line."""
    values = {}
    for one, _, container in _list_fields(kind):
        value = options[one.name]
        if container in (tuple, list):
            value = container(value)
        elif container is not None:
            value = dict(value)
        values[one.name] = value
    return kind(**values)


class RunCommand(Command):
    """A command that starts a run, executes or follows it, and prints its result.

    Subclasses implement `start`, and `show_result` for a run that has ended. They may change `explain_failure`.
    """

    def add_run_arguments(self, parser: CommandParser) -> None:
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--detach", action="store_true", help="return at once; a worker executes the run")
        where.add_argument("--here", action="store_true", help="work in this process, without worker or queue")

    def start(self, *, send: bool, **options: Any) -> Run:
        raise NotImplementedError(type(self).__name__)

    def show_result(self, result: dict[str, Any]) -> None:
        raise NotImplementedError(type(self).__name__)

    def work(self, *args: Any, **options: Any) -> dict[str, Any]:
        return self.follow(self.start(send=not options["here"], **options), options)

    def follow(self, run: Run, options: dict[str, Any]) -> dict[str, Any]:
        """Execute the run here, follow it, or leave it to a worker; return its number, state and result."""
        if options["here"]:
            echo = self.say if options["verbosity"] else None
            # None: a worker has claimed it first.
            run = execute_run(run.pk, echo=echo) or follow_run(run, self.say)
        elif not options["detach"]:
            run = follow_run(run, self.say)
        if run.state in (Run.State.FAILED, Run.State.CANCELLED):
            raise self.explain_failure(run)
        return {"run": run.pk, "state": run.state, **(run.result or {})}

    def explain_failure(self, run: Run) -> EvalappError:
        return EvalappError(run.error or f"Run {run.pk} was cancelled. Continue it with: evalapp retry {run.pk}")

    def show(self, result: dict[str, Any]) -> None:
        if result["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {result['run']} is {result['state']}. Follow it with: evalapp run {result['run']}")
        else:
            self.show_result(result)
