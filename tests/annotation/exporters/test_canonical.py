"""An export shows the data at one moment, even from a small SQLite project, and blocks no writer."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from annotation.exporters import canonical
from tests.faults.backup_world import make_sqlite_installation


def test_small_sqlite_export_is_consistent(tmp_path: Path, migrated_file: Path, django_db_blocker: Any) -> None:
    from tests.cast import make_cast
    from tests.factories import make_items

    source = make_sqlite_installation(tmp_path / "source", migrated_file)
    with django_db_blocker.unblock(), source.django():
        project = make_cast().project
        make_items(project, 2)
        with canonical.one_moment():
            rows = canonical.rows(project)
            found = [next(rows)]
            with sqlite3.connect(source.folder / "evalapp.sqlite3", timeout=0) as other:  # another writer, meanwhile
                other.execute("UPDATE annotation_item SET key = key || '-new'")
                other.execute(
                    "INSERT INTO annotation_corpuspair (project_id, position, query, response, meta)"
                    f" VALUES ({project.pk}, 0, 'q', 'r', '{{}}')"
                )
            other.close()
            with canonical.one_moment():  # a reader within the export sees the same data
                found += rows
        assert [(table, row["id"]) for table, row in found] == [("items", "i000"), ("items", "i001")]
        assert [table for table, _ in canonical.rows(project)] == ["items", "items", "corpus"]
