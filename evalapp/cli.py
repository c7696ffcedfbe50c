"""The program `evalapp`: all commands of an installation, as `manage.py` in a checkout has them, and those that need no
project. The latter run without Django, also where only some extras of the package are installed.

To add a command without project, write a module with `main(arguments) -> int`, its exit status, and list it in
`COMMANDS`.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from evalapp import __version__
from evalapp.extras import explain_install, find_extra
from evalapp.layout import prefer_own_packages

#: The installation's commands need this extra.
SERVER = "server"


@dataclass(frozen=True)
class Command:
    """A command that needs no project."""

    module: str  # has `main(arguments: list[str]) -> int`
    extra: str  # the extra that brings the packages which the module imports
    help: str
    # An installation has a command with this name, too, which runs unless one of these options is given.
    is_shared: bool = False
    options: tuple[str, ...] = ()


COMMANDS = {
    "evaluators": Command("scoring.papers", "metrics", "List the evaluators, or their papers in BibTeX.", True),
    "recompute": Command("scoring.boards.recompute", "metrics", "Compute the tables of an export again, and compare."),
    "score": Command(
        "scoring.ml.score_files.command",
        "metrics",
        "Score text files with a line per segment.",
        True,
        ("-i", "--input"),
    ),
}


def main(arguments: Sequence[str] | None = None, program: str = "evalapp") -> None:
    """Run a command and exit with its status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words else "help"
    prefer_own_packages()
    if name in ("--version", "version"):
        print(f"evalapp {__version__}")
        return
    if name in ("help", "--help", "-h") and len(words) < 2:
        print(_list_commands(program))
    command = COMMANDS.get(name)
    if command and command.is_shared and not {word.partition("=")[0] for word in words} & set(command.options):
        command = command if find_spec("django") is None else None
    extra = command.extra if command else SERVER
    try:
        if command:
            sys.exit(import_module(command.module).main(words[1:]))
        if find_spec("django") is not None:
            run_installation([program, *words])
        elif words and name not in ("help", "--help", "-h"):
            raise ModuleNotFoundError(name="django")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or find_spec(missing) is not None or missing == "evalapp":
            raise
        way_out = explain_install(find_extra(missing, extra))
        print(f"{program} {name} needs the package {missing}. {way_out}", file=sys.stderr)
        sys.exit(1)


def _list_commands(program: str) -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.help}" for name, command in sorted(COMMANDS.items())]
    has_django = find_spec("django") is not None
    rest = "Commands of an installation:" if has_django else f"All others need: pip install 'evalapp[{SERVER}]'"
    return "\n".join([f"Usage: {program} COMMAND", "", "Commands without project:", *lines, "", rest])


def run_installation(words: list[str]) -> None:
    """Run a command of the installation; `words` begin with the name of the program."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    try:
        execute_from_command_line(words)
    except DatabaseError as error:
        from evalapp.common.outages import explain_damage

        if (damage := explain_damage(error)) is None:
            raise
        sys.exit(damage.detail)
    except ImproperlyConfigured as error:
        # A wrong setting is the operator's mistake: the message names the variable and the way out.
        sys.exit(f"Configuration: {error}")
