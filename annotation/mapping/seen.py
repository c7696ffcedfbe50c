"""Items and outputs that were already converted, so that repeated ones are left out and contradictions reported."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable

#: So many are remembered in memory, more in a temporary file.
_MOST = 100_000
#: The number of a file is stored above that of a row.
_FILE = 1 << 40
_WORD = (1 << 64) - 1
#: Bytes of the filter, a power of two. 30 million keys set 36 % of its bits, so one new key in eight is looked up.
_FILTER = 1 << 24


class _Filter:
    """A Bloom filter with two bits for each key. It knows most new keys without looking into the file."""

    def __init__(self) -> None:
        self.bytes = bytearray(_FILTER)

    def add(self, code: int) -> None:
        for place in (code, code >> 27):
            self.bytes[place >> 3 & _FILTER - 1] |= 1 << (place & 7)

    def may_have(self, code: int) -> bool:
        other = code >> 27
        first, second = self.bytes[code >> 3 & _FILTER - 1], self.bytes[other >> 3 & _FILTER - 1]
        return bool(first >> (code & 7) & second >> (other & 7) & 1)


class Seen:
    """Remembers hashes in little memory: what was converted, its content, and the row."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        #: The place above the hash of the content.
        self._near: dict[int, int] = {}
        #: Made when there are more; most imports never need the memory of the filter.
        self._far: sqlite3.Connection | None = None
        self._filter: _Filter | None = None
        self._files: list[str] = []

    def begin_file(self, name: str) -> None:
        """The rows that follow are from another file."""
        self._files.append(name)

    def add(self, key: Hashable, content: Hashable, row: int) -> tuple[str, int] | bool:
        """True if `key` is new, False if it had the same content before, otherwise (file or "" if it is this one, row)
        of the other content."""
        code, text = hash(key), hash(content) & _WORD
        before = self._near.get(code)
        if before is None and self._filter is not None and self._filter.may_have(code):
            before = self._find_far(code)
        if before is None:
            self._near[code] = (row + _FILE * (len(self._files) - 1)) << 64 | text
            if len(self._near) >= self._most:
                self._spill()
            return True
        if before & _WORD == text:
            return False
        file, place = divmod(before >> 64, _FILE)
        return "" if file == len(self._files) - 1 else self._files[file], place

    def _find_far(self, code: int) -> int | None:
        assert self._far is not None
        row = self._far.execute("SELECT place, content FROM seen WHERE key = ?", [code]).fetchone()
        return None if row is None else row[0] << 64 | row[1] & _WORD

    def _spill(self) -> None:
        if self._far is None or self._filter is None:
            self._filter = _Filter()
            self._far = sqlite3.connect("", isolation_level=None)  # a temporary file
            self._far.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-16000;")
            self._far.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY, place INTEGER, content INTEGER)")
        self._far.execute("BEGIN")
        codes = sorted(self._near)
        for code in codes:
            self._filter.add(code)
        self._far.executemany("INSERT INTO seen VALUES (?, ?, ?)", map(self._as_row, codes))
        self._far.execute("COMMIT")
        self._near.clear()

    def _as_row(self, code: int) -> tuple[int, int, int]:
        value = self._near[code]
        text = value & _WORD
        return code, value >> 64, text - (text >> 63 << 64)  # a signed number
