"""Django's `migrate` with a short lock timeout on PostgreSQL: a migration that waits for a long query would block all
other queries on the table."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.migrations.recorder import MigrationRecorder

#: Longest wait for a lock, in milliseconds.
LOCK_TIMEOUT = 5000


class Command(migrate.Command):
    help = "Migrate the database to this version; waits at most 5 s for a lock."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="Print one JSON object on stdout and nothing else.")

    def handle(self, *args: Any, json: bool = False, **options: Any) -> None:
        connection = connections[options["database"]]
        if json:
            options |= {"verbosity": 0, "interactive": False}
            before = _applied(connection)
        try:
            with _lock_timeout(connection):
                super().handle(*args, **options)
        except OperationalError as error:
            if getattr(error.__cause__, "pgcode", "") != "55P03":  # lock_not_available
                raise
            raise CommandError(
                f"A table was locked for more than {LOCK_TIMEOUT / 1000:g} s. Applied migrations remain; the one that "
                "had to wait was rolled back. Stop the workers or wait for a quiet moment, then run the command again."
            ) from error
        if json:
            self.stdout.write(_report(sorted(_applied(connection) - before)))


@contextmanager
def _lock_timeout(connection: Any) -> Iterator[None]:
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {LOCK_TIMEOUT}")
    try:
        yield
    finally:
        if connection.connection is not None and connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")


def _applied(connection: Any) -> set[tuple[str, str]]:
    return set(MigrationRecorder(connection).applied_migrations())


def _report(applied: list[tuple[str, str]]) -> str:
    return json.dumps({"applied": [".".join(key) for key in applied]})
