"""The data of every release are migrated on both databases, without long locks; a backup of the first release is
restored into the current one."""

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

from .backup_world import Installation, make_postgres_installation, make_sqlite_installation
from .release_history import ROWS, ReleaseHistory, read_rows

pytestmark = pytest.mark.promise("migrations")


def migrate_all_releases(backup: Path | None = None, after_first: Any = None) -> ReleaseHistory:
    """Migrate through all releases to the current one. After the first, write `backup` and call `after_first`."""
    released = ReleaseHistory()
    for number, _ in enumerate(released.steps()):
        if number == 0 and backup is not None:
            make_backup(target=backup)
        if number == 0 and after_first is not None:
            after_first()
    assert number > 5
    assert states.read_state(connection) == states.newest()
    call_command("migrate", verbosity=0, interactive=False)
    check_rows(released)
    return released


def check_rows(released: ReleaseHistory, tables: set[str] | None = None) -> None:
    """Check that all columns have their original values, and that new columns of old rows have the expected values."""
    from annotation.models import Dialogue, Item, Rating, System, TextBlock
    from evalapp.common.models import AuditEvent, Run
    from evalapp.names import natural_key

    stored = {name: rows for name, rows in released.rows.items() if tables is None or name in tables}
    now = read_rows(apps, stored)
    for row in now["annotation_comparison"]:  # annotation.0007 also sets the first-shown side of old rows
        assert row["meta"].pop("swapped", None) is (True if row["id"] == 1 else None)
    # annotation.0010 changes the order of items: text blocks of the old order are deleted, and runs create new ones.
    if (blocks := stored.pop("annotation_textblock", None)) is not None:
        assert not TextBlock.objects.exists()
        runs = Run.objects.filter(kind="search", state="queued", title="Prepare the search")
        assert sorted(runs.values_list("project", flat=True)) == sorted(row["project_id"] for row in blocks)
    for model, field in ((Item, "key"), (System, "name"), (Dialogue, "key")):
        keys = model._base_manager.values_list(field, "order_key")
        assert len(keys) == ROWS
        assert all(key == natural_key(text) for text, key in keys)
    for name, rows in stored.items():
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
    """A backup of the first release is also restored into an empty database of the current version."""
    source, target = (
        make_sqlite_installation(tmp_path / "source"),
        make_sqlite_installation(tmp_path / "target", migrated_file),
    )
    file = tmp_path / "old.zip"
    with django_db_blocker.unblock(), source.django():
        released = migrate_all_releases(backup=file)
        first = {name: rows for name, rows in released.rows.items() if name in _read_table_names(file)}
        with pytest.raises(Conflict, match="other migrations than the backup"):
            restore_backup(path=file, replace=True)
    with django_db_blocker.unblock(), target.django():
        restore_backup(path=file, index=False)
        assert states.read_state(connection) == states.newest()
        _check_runs(released.rows)
        check_rows(released, set(first) - {"common_run"})


def _read_table_names(file: Path) -> set[str]:
    from evalapp.common.backup.container import Reader

    with Reader(file) as reader:
        return {entry.name for entry in reader.manifest.tables}


def _check_runs(rows: dict[str, Any]) -> None:
    from evalapp.common.models import Run

    assert [run.title for run in Run.objects.order_by("pk")] == [row["title"] for row in rows["common_run"]]


@pytest.mark.server("postgres")
def test_every_release_migrates_on_postgresql(tmp_path, postgres_url, django_db_blocker, monkeypatch):
    """While another session locks a table, `migrate` gives up soon, because requests would have to wait for it."""
    installation: Installation = make_postgres_installation(tmp_path / "installation", postgres_url)

    def lock_and_migrate() -> None:
        import psycopg2

        session = psycopg2.connect(postgres_url)
        try:
            with session.cursor() as cursor, monkeypatch.context() as patch:
                patch.setattr(migrate, "LOCK_TIMEOUT", 200)
                cursor.execute("LOCK TABLE common_auditevent IN ACCESS SHARE MODE")  # like a long query
                before = states.read_state(connection)
                with pytest.raises(CommandError, match=r"table was locked for more than 0\.2 s"):
                    call_command("migrate", "common", verbosity=0, interactive=False)
                assert states.read_state(connection) == before
        finally:
            session.close()

    with django_db_blocker.unblock(), installation.django():
        migrate_all_releases(after_first=lock_and_migrate)
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("0",)
