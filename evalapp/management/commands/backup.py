"""`manage.py backup FILE`: one file with everything, made while people work."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evalapp.common import commands
from evalapp.common.backup.writing import make_backup


class Command(commands.Command):
    help = "Copy the whole installation into one file, while people work: every row and the files that belong to it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a new file, readable by you alone; - for stdout")
        parser.add_argument("--overwrite", action="store_true", help="take the place of a file that is there")

    def work(self, *, file: str, overwrite: bool, **options: Any) -> dict[str, Any]:
        if file == "-":
            if options["json"]:
                raise commands.WrongUsage("--json and - both want stdout. Name a file.")
            if self.stdout.isatty():
                raise commands.WrongUsage("stdout is a terminal. Send it somewhere: backup - > FILE")
        target = None if file == "-" else Path(file).expanduser().absolute()
        return asdict(make_backup(target=target, overwrite=overwrite, say=self.say))

    def show(self, result: dict[str, Any]) -> None:
        # Where the backup itself goes to stdout, what is said about it does not.
        tell = self.say if result["file"] == "-" else self.stdout.write
        tell(
            f"{result['file']}: {result['rows']:,} rows of {result['tables']} tables, {result['files']:,} files, "
            f"{result['bytes']:,} bytes"
        )
        tell(f"fingerprint {result['fingerprint']}")
        for name in result["missing"]:
            tell(f"MISSING {name}: a row speaks of it, but it is not there. The backup goes without it.")
        tell("It holds password hashes and all that people wrote: keep it where only you can read it.")
