"""Django's `migrate`, which on PostgreSQL does not wait long for a lock: a change of a table that waits behind one long
question would make everybody else wait behind it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.migrations.recorder import MigrationRecorder

#: Milliseconds; others wait no longer than this, then it gives up.
LOCK_TIMEOUT = 5000


class Command(migrate.Command):
    help = "Bring the tables of the database to this version; waits 5 s for a lock, then gives up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="Print one JSON object on stdout and nothing else.")

    def handle(self, *args: Any, json: bool = False, **options: Any) -> None:
        connection = connections[options["database"]]
        if json:
            options |= {"verbosity": 0, "interactive": False}
            before = _applied(connection)
        try:
            with _short_waits(connection):
                super().handle(*args, **options)
        except OperationalError as error:
            if getattr(error.__cause__, "pgcode", "") != "55P03":  # lock_not_available
                raise
            raise CommandError(
                f"Somebody held a table for more than {LOCK_TIMEOUT / 1000:g} s. What is applied stays, the migration "
                "that had to wait was taken back. Stop the workers, or wait for a quiet moment, then run it again."
            ) from error
        if json:
            self.stdout.write(_report(sorted(_applied(connection) - before)))


class _short_waits:
    """For this connection and as long as the block lasts."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __enter__(self) -> None:
        self._set(f"SET lock_timeout = {LOCK_TIMEOUT}")

    def __exit__(self, *error: object) -> None:
        if self.connection.connection is not None and self.connection.is_usable():
            self._set("RESET lock_timeout")

    def _set(self, statement: str) -> None:
        if self.connection.vendor == "postgresql":
            with self.connection.cursor() as cursor:
                cursor.execute(statement)


def _applied(connection: Any) -> set[tuple[str, str]]:
    return set(MigrationRecorder(connection).applied_migrations())


def _report(applied: list[tuple[str, str]]) -> str:
    return json.dumps({"applied": [".".join(key) for key in applied]})
