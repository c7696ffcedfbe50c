"""`evalapp backup FILE`: copy the installation into one file."""

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evalapp.common import commands
from evalapp.common.backup.writing import make_backup


class Command(commands.Command):
    help = "Copy the whole installation, all rows and files, into one file. Works while the installation is in use."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a new file, readable by you only; - for stdout")
        parser.add_argument("--overwrite", action="store_true", help="replace an existing file")

    def work(self, *, file: str, overwrite: bool, **options: Any) -> dict[str, Any]:
        if file == "-":
            if options["json"]:
                raise commands.WrongUsage("--json and - both write to stdout. Name a file.")
            if self.stdout.isatty():
                raise commands.WrongUsage("stdout is a terminal. Redirect it: backup - > FILE")
        target = None if file == "-" else Path(file).expanduser().absolute()
        return asdict(make_backup(target=target, overwrite=overwrite, say=self.say))

    def show(self, result: dict[str, Any]) -> None:
        tell = self.say if result["file"] == "-" else self.stdout.write  # stdout has the backup
        tell(
            f"{result['file']}: {result['rows']:,} rows of {result['tables']} tables, {result['files']:,} files, "
            f"{result['bytes']:,} bytes"
        )
        tell(f"fingerprint {result['fingerprint']}")
        for name in result["missing"]:
            tell(f"MISSING {name}: a row refers to it, but the file does not exist. The backup does not contain it.")
        tell("The backup contains password hashes and all texts: store it where only you can read it.")
