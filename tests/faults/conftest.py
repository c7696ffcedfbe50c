"""Fixtures with real installations that tests may break; see `stack`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .stack import Stack


@pytest.fixture
def stack(tmp_path: Path, migrated_file: Path, django_db_blocker: Any) -> Iterator[Stack]:
    """An installation on SQLite; no process is started yet."""
    with Stack(tmp_path / "data") as made, django_db_blocker.unblock():
        shutil.copy(migrated_file, made.folder / "evalapp.sqlite3")
        with made.django():
            yield made


@pytest.fixture
def postgres_stack(tmp_path: Path, migrated_url: str, django_db_blocker: Any) -> Iterator[Stack]:
    """An installation with its own PostgreSQL database; no process is started yet."""
    with Stack(tmp_path / "data", database_url=migrated_url) as made, django_db_blocker.unblock(), made.django():
        yield made
