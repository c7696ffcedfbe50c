"""The database of every release is migrated with its data, on both databases, without long locks; a backup of the first
release is restored into this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from evalapp.common.backup import states
from evalapp.common.backup.restoring import restore_backup
from evalapp.common.backup.writing import make_backup
from evalapp.common.errors import Conflict
from evalapp.management.commands import migrate

from .backup_world import Installation, on_postgres, on_sqlite
from .released import ROWS, Released, rows_now

pytestmark = pytest.mark.promise("migrations")


def come_forward(backup: Path | None = None, hold: Any = None) -> Released:
    """Migrates through every release to the present one; `backup` is made from the first."""
    released = Released()
    for number, _ in enumerate(released.steps()):
        if number == 0 and backup is not None:
            make_backup(target=backup)
        if number == 0 and hold is not None:
            hold()
    assert number > 5
    assert states.read_state(connection) == states.newest()
    call_command("migrate", verbosity=0, interactive=False)
    same_rows(released)
    return released


def same_rows(released: Released, tables: set[str] | None = None) -> None:
    """Every column has the value that was written; new columns have the expected values for old rows."""
    from annotation.models import Dialogue, Item, Rating, System, TextBlock
    from evalapp.common.models import AuditEvent, Run
    from evalapp.names import natural_key

    kept = {name: rows for name, rows in released.rows.items() if tables is None or name in tables}
    now = rows_now(apps, kept)
    for row in now["annotation_comparison"]:  # annotation.0007 also sets the first-shown side of old rows
        assert row["meta"].pop("swapped", None) is (True if row["id"] == 1 else None)
    # annotation.0010 changes the order of items: text blocks of the old order are deleted, and runs create new ones.
    if (blocks := kept.pop("annotation_textblock", None)) is not None:
        assert not TextBlock.objects.exists()
        runs = Run.objects.filter(kind="search", state="queued", title="Prepare the search")
        assert sorted(runs.values_list("project", flat=True)) == sorted(row["project_id"] for row in blocks)
    for model, field in ((Item, "key"), (System, "name"), (Dialogue, "key")):
        found = model._base_manager.values_list(field, "order_key")
        assert len(found) == ROWS
        assert all(key == natural_key(text) for text, key in found)
    for name, rows in kept.items():
        assert now[name] == rows, name
        assert len(rows) == ROWS, name
    judged = set(Rating.objects.exclude(output=None).values_list("output__item", flat=True))
    assert judged
    assert set(Item.objects.filter(judged=True).values_list("pk", flat=True)) >= judged
    events = AuditEvent.objects.order_by("pk")[:ROWS]
    assert [(event.scope, event.by) for event in events] == [
        (event.project.slug if event.project else "", event.actor_id) for event in events
    ]


def test_every_release_migrates_on_sqlite(tmp_path, migrated_file, django_db_blocker):
    """This version also restores a backup of the first release, into newer, empty tables."""
    source, target = on_sqlite(tmp_path / "source"), on_sqlite(tmp_path / "target", migrated_file)
    file = tmp_path / "old.zip"
    with django_db_blocker.unblock(), source.django():
        released = come_forward(backup=file)
        first = {name: rows for name, rows in released.rows.items() if name in _tables_in(file)}
        with pytest.raises(Conflict, match="other migrations than the backup"):
            restore_backup(path=file, replace=True)
    with django_db_blocker.unblock(), target.django():
        restore_backup(path=file, index=False)
        assert states.read_state(connection) == states.newest()
        _runs_as_after_a_crash(released.rows)
        same_rows(released, set(first) - {"common_run"})


def _tables_in(file: Path) -> set[str]:
    from evalapp.common.backup.container import Reader

    with Reader(file) as reader:
        return {entry.name for entry in reader.manifest.tables}


def _runs_as_after_a_crash(rows: dict[str, Any]) -> None:
    from evalapp.common.models import Run

    assert [run.title for run in Run.objects.order_by("pk")] == [row["title"] for row in rows["common_run"]]


@pytest.mark.server("postgres")
def test_every_release_migrates_on_postgresql(tmp_path, postgres_url, django_db_blocker, monkeypatch):
    """While another session locks a table, `migrate` gives up soon, so that requests do not wait long behind it."""
    station: Installation = on_postgres(tmp_path / "station", postgres_url)

    def hold() -> None:
        import psycopg2

        other = psycopg2.connect(postgres_url)
        try:
            with other.cursor() as cursor, monkeypatch.context() as patch:
                patch.setattr(migrate, "LOCK_TIMEOUT", 200)
                cursor.execute("LOCK TABLE common_auditevent IN ACCESS SHARE MODE")  # like a long query
                before = states.read_state(connection)
                with pytest.raises(CommandError, match=r"table was locked for more than 0\.2 s"):
                    call_command("migrate", "common", verbosity=0, interactive=False)
                assert states.read_state(connection) == before
        finally:
            other.close()

    with django_db_blocker.unblock(), station.django():
        come_forward(hold=hold)
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("0",)
