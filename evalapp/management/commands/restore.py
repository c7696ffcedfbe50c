"""`evalapp restore FILE`: load a backup into an empty installation, or replace its content."""

import shutil
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from evalapp.common import commands
from evalapp.common.backup.restoring import check_backup, restore_backup, settle
from evalapp.common.errors import Unavailable

WORD = "replace"


class Command(commands.Command):
    help = "Load a backup into an empty installation, on either database, completely or not at all."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", nargs="?", help="written by `backup`; - for stdin")
        parser.add_argument("--check", action="store_true", help="only check the file completely")
        parser.add_argument(
            "--fingerprint", default="", metavar="SHA256", help="as printed by `backup`; refuse any other file"
        )
        parser.add_argument("--replace", action="store_true", help="delete all existing rows and files")
        parser.add_argument("--yes", action="store_true", help="with --replace: do not ask")
        parser.add_argument("--no-index", action="store_true", help="do not build the search indexes")
        parser.add_argument("--settle", action="store_true", help="without FILE: finish or undo a killed restore")

    def work(self, *, file: str | None, **options: Any) -> dict[str, Any]:
        if options["settle"]:
            if file:
                raise commands.WrongUsage("--settle takes no FILE.")
            settle(say=self.say)
            return {"settled": True}
        if not file:
            raise commands.WrongUsage("Name a FILE written by `backup`.")
        with self._local(file) as path:
            if options["check"]:
                return self._check(path, options["fingerprint"])
            if options["replace"] and not options["yes"]:
                self._ask()
            done = restore_backup(
                path=path,
                replace=options["replace"],
                fingerprint=options["fingerprint"],
                index=not options["no_index"],
                say=self.say,
            )
        return {**asdict(done), "file": file}

    def _check(self, path: Path, fingerprint: str) -> dict[str, Any]:
        with check_backup(path=path, fingerprint=fingerprint, say=self.say) as reader:
            manifest = reader.manifest
            about = {"made_at": manifest.made_at, "product_version": manifest.product_version}
            return {"whole": True, **about, "fingerprint": reader.fingerprint, **manifest.summary}

    @contextmanager
    def _local(self, file: str) -> Iterator[Path]:
        """Copy a backup from stdin to a file, because it is read more than once."""
        if file != "-":
            yield Path(file).expanduser().absolute()
            return
        with tempfile.NamedTemporaryFile(prefix=".restore-", dir=settings.DATA_DIR) as copy:
            try:
                shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
                copy.flush()
            except OSError as error:
                text = f"{settings.DATA_DIR}: {error.strerror}. Free some space, then restore again."
                raise Unavailable(text) from error
            yield Path(copy.name)

    def _ask(self) -> None:
        if not sys.stdin.isatty():
            raise commands.WrongUsage("--replace deletes all existing rows and files. Confirm with --yes.")
        database = settings.DATABASES["default"]["NAME"]
        self.say(f"All rows of {database} and all files below {settings.DATA_DIR} will be deleted.")
        if input(f"Type {WORD} to continue: ").strip() != WORD:
            raise CommandError("Nothing was changed.", returncode=1)

    def show(self, result: dict[str, Any]) -> None:
        if "settled" in result:
            self.stdout.write("no restore is unfinished")
            return
        if result.get("whole"):
            self.stdout.write(f"complete: made {result['made_at']} by version {result['product_version']}")
        self.stdout.write(f"{result['rows']:,} rows of {result['tables']} tables, {result['files']:,} files")
        self.stdout.write(f"fingerprint {result['fingerprint']}")
        for name in result["missing"]:
            self.stdout.write(f"MISSING {name}: the file did not exist when the backup was made")
        for outcome, count in result.get("runs", {}).items():
            if count:
                self.stdout.write(f"runs that were running: {count} {outcome}")
        for line in result.get("left", ()):
            self.stdout.write(f"-> {line}")
