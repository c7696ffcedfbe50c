"""`manage.py restore FILE`: a backup into an empty installation, or in place of what there is."""

from __future__ import annotations

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
    help = "Put a backup into an empty installation, on either database; all of it or nothing."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", nargs="?", help="made by `backup`; - for stdin")
        parser.add_argument("--check", action="store_true", help="only read all of it and say whether it is whole")
        parser.add_argument(
            "--fingerprint", default="", metavar="SHA256", help="what `backup` printed; any other file is refused"
        )
        parser.add_argument("--replace", action="store_true", help="lose what is there: all rows and all files")
        parser.add_argument("--yes", action="store_true", help="with --replace: do not ask")
        parser.add_argument("--no-index", action="store_true", help="leave the search indexes to `reindex`")
        parser.add_argument(
            "--settle", action="store_true", help="without FILE: finish or undo what a killed restore left"
        )

    def work(self, *, file: str | None, **options: Any) -> dict[str, Any]:
        if options["settle"]:
            if file:
                raise commands.WrongUsage("--settle takes no FILE.")
            settle(say=self.say)
            return {"settled": True}
        if not file:
            raise commands.WrongUsage("Name the FILE that `backup` made.")
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
            found = reader.manifest
            return {
                "whole": True,
                "made_at": found.made_at,
                "product_version": found.product_version,
                "fingerprint": reader.fingerprint,
                "tables": len(found.tables),
                "rows": found.rows,
                "files": len(found.files),
                "missing": list(found.missing),
            }

    @contextmanager
    def _local(self, file: str) -> Iterator[Path]:
        """A backup from stdin is kept meanwhile: it is read more than once."""
        if file != "-":
            yield Path(file).expanduser().absolute()
            return
        with tempfile.NamedTemporaryFile(prefix=".restore-", dir=settings.DATA_DIR) as kept:
            try:
                shutil.copyfileobj(sys.stdin.buffer, kept, 1 << 20)
                kept.flush()
            except OSError as error:
                raise Unavailable(f"{settings.DATA_DIR}: {error.strerror}. Make room, then restore again.") from error
            yield Path(kept.name)

    def _ask(self) -> None:
        if not sys.stdin.isatty():
            raise commands.WrongUsage("--replace loses everything that is there. Say --yes, too.")
        database = settings.DATABASES["default"]["NAME"]
        self.say(f"Every row of {database} and every file below {settings.DATA_DIR} will be lost.")
        if input(f"Type {WORD} to go on: ").strip() != WORD:
            raise CommandError("Nothing was changed.", returncode=1)

    def show(self, result: dict[str, Any]) -> None:
        if "settled" in result:
            self.stdout.write("nothing of a restore is left over")
            return
        if result.get("whole"):
            self.stdout.write(f"whole: made {result['made_at']} by version {result['product_version']}")
        self.stdout.write(f"{result['rows']:,} rows of {result['tables']} tables, {result['files']:,} files")
        self.stdout.write(f"fingerprint {result['fingerprint']}")
        for name in result["missing"]:
            self.stdout.write(f"MISSING {name}: it was not there when the backup was made")
        for outcome, count in result.get("runs", {}).items():
            if count:
                self.stdout.write(f"runs that were running: {count} {outcome}")
        for line in result.get("left", ()):
            self.stdout.write(f"-> {line}")
