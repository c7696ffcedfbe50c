"""SQLite with several writers: Django's IMMEDIATE transactions and `timeout` suffice, nobody sees an error."""

from __future__ import annotations

import threading
from pathlib import Path

from django.db import connection, transaction

from evalapp.accounts.models import Project

WRITERS, TURNS = 16, 6


def test_16_threads_write_without_an_error(file_database: Path) -> None:
    """Read, compute, write in one transaction: without IMMEDIATE such transactions fail as soon as two overlap."""
    Project.objects.create(slug="one", name="0")
    errors: list[Exception] = []
    barrier = threading.Barrier(WRITERS)

    def write() -> None:
        try:
            connection.ensure_connection()
            barrier.wait()
            for _ in range(TURNS):
                with transaction.atomic():
                    name = int(Project.objects.get().name)
                    threading.Event().wait(0.003)  # other work in the transaction
                    Project.objects.update(name=str(name + 1))
                Project.objects.filter(slug="two").update(name="0")  # a single statement waits as well
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert Project.objects.get().name == str(WRITERS * TURNS)
