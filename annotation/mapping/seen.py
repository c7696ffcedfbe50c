"""Items and outputs that were already converted, so that repeated ones are left out and contradictions reported."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable

#: So many are remembered in memory, more in a temporary file.
_MOST = 300_000
#: The number of a file is stored above that of a row.
_FILE = 1 << 40


class Seen:
    """Remembers hashes in little memory: what was converted, its content, and the row."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._near: dict[int, tuple[int, int]] = {}
        self._far: sqlite3.Connection | None = None
        self._files: list[str] = []

    def begin_file(self, name: str) -> None:
        """The rows that follow are from another file."""
        self._files.append(name)

    def add(self, key: Hashable, content: Hashable, row: int) -> tuple[str, int] | bool:
        """True if `key` is new, False if it had the same content before, otherwise (file or "" if it is this one, row)
        of the other content."""
        code, text = hash(key), hash(content)
        before = self._near.get(code)
        if before is None and self._far is not None:
            before = self._far.execute("SELECT content, place FROM seen WHERE key = ?", [code]).fetchone()
        place = row + _FILE * (len(self._files) - 1)
        if before is None:
            self._near[code] = (text, place)
            if len(self._near) >= self._most:
                self._spill()
            return True
        if before[0] == text:
            return False
        file = before[1] // _FILE
        return "" if file == len(self._files) - 1 else self._files[file], before[1] % _FILE

    def _spill(self) -> None:
        if self._far is None:
            self._far = sqlite3.connect("", isolation_level=None)  # a temporary file
            self._far.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-16000;")
            self._far.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY, content INTEGER, place INTEGER)")
        rows = sorted((code, *value) for code, value in self._near.items())
        self._far.execute("BEGIN")
        self._far.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", rows)
        self._far.execute("COMMIT")
        self._near.clear()
