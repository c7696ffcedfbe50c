"""The staging file of an import: a private SQLite database, in which SQL checks millions of rows in constant memory
before anything is stored. Nothing here uses the main database."""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from annotation.parsers import KINDS
from annotation.services.bulk import split_by_size

_TABLES = {
    "systems": "key TEXT, kind TEXT, meta TEXT",
    "items": "key TEXT, context TEXT, source TEXT, grp TEXT, meta TEXT, refs TEXT, nrefs INTEGER",
    "dialogues": "key TEXT, system TEXT, turns TEXT, speakers TEXT, meta TEXT",
    "outputs": "item TEXT, system TEXT, step INTEGER, text TEXT, meta TEXT",
    "ratings": (
        "item TEXT, system TEXT, step INTEGER, dialogue TEXT, rater TEXT, aspect TEXT, value REAL,"
        " simulated INTEGER, meta TEXT, out INTEGER, dia INTEGER, asp INTEGER"
    ),
    "comparisons": (
        "item TEXT, a TEXT, step_a INTEGER, b TEXT, step_b INTEGER, reference INTEGER, rater TEXT, aspect TEXT,"
        " verdict TEXT, simulated INTEGER, meta TEXT, out INTEGER, out_b INTEGER, asp INTEGER"
    ),
    "corpus": "query TEXT, response TEXT, meta TEXT",
    "references": (
        "name TEXT, item TEXT, position INTEGER, text TEXT, meta TEXT, written TEXT, submission TEXT, told INTEGER,"
        " told_act TEXT"
    ),
    "attempts": "campaign TEXT, item TEXT, submission TEXT, row TEXT",
    "filters": "key TEXT, row TEXT",
    "campaigns": "key TEXT, row TEXT",
    "score_sets": "key TEXT, row TEXT",
    "scores": (
        "name TEXT, item TEXT, system TEXT, step INTEGER, value REAL, note TEXT, in_training INTEGER, empty INTEGER,"
        " truncated INTEGER, seen INTEGER, out INTEGER"
    ),
    "judge_answers": "evaluator TEXT, request TEXT, sample INTEGER, model TEXT, row TEXT",
    "aspects": "key TEXT, low REAL, high REAL, meta TEXT, position INTEGER",
}

#: What happens to a staged row. `known`: not in the upload, but stored and referred to. `mentioned`: not in the upload
#: either; created because a row names it (systems, aspects).
NEW, SAME, REPLACE, FAULTY, KNOWN, MENTIONED = "new", "same", "replace", "faulty", "known", "mentioned"


class Staging:
    """The SQLite file. Rows have `n` (order of reading), `file` (index into `files`), `line`, `act`, and `id`, the
    primary key in the main database once it is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.remove()
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
            "PRAGMA cache_size=-24000; PRAGMA page_size=8192; PRAGMA temp_store=FILE;"
        )
        for table, columns in _TABLES.items():
            self.db.execute(
                f'CREATE TABLE "{table}" (n INTEGER PRIMARY KEY, file INTEGER, line INTEGER, act TEXT, id INTEGER,'
                f" {columns})"
            )
        self.files: list[str] = []

    def close(self) -> None:
        self.db.close()
        self.remove()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def insert_statement(self, table: str) -> str:
        columns = KINDS[table].columns
        places = ",".join("?" * (len(columns) + 3))
        return f'INSERT INTO "{table}" (file, line, act, {",".join(columns)}) VALUES ({places})'

    def insert(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        self.db.execute("BEGIN")
        self.db.executemany(self.insert_statement(table), rows)
        self.db.execute("COMMIT")

    def execute(self, sql: str, values: Iterable[Any] = ()) -> sqlite3.Cursor:
        return self.db.execute(sql, tuple(values))

    def many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self.db.execute("BEGIN")
        self.db.executemany(sql, rows)
        self.db.execute("COMMIT")

    def value(self, sql: str, values: Iterable[Any] = ()) -> Any:
        return self.execute(sql, values).fetchone()[0]

    def has(self, table: str, where: str = "1") -> bool:
        return bool(self.value(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {where})"))

    def stream(self, sql: str, values: Iterable[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows one by one; the tables that are read must not be written meanwhile."""
        cursor = self.execute(sql, values)
        cursor.arraysize = 500
        yield from cursor

    def batches(self, sql: str, size: int = 1000) -> Iterator[list[tuple[Any, ...]]]:
        """`sql` selects `n` first, has a `?` for the last `n` and orders by it. Each batch is read completely, so that
        the table may be written between batches. Batches of long texts have fewer rows."""
        last = 0
        while rows := self._take(self.execute(f"{sql} LIMIT {size}", [last]), size):
            yield rows
            last = rows[-1][0]

    @staticmethod
    def _take(cursor: sqlite3.Cursor, size: int) -> list[tuple[Any, ...]]:
        rows = next(split_by_size(cursor, size), [])
        cursor.close()
        return rows

    def name(self, file: int | None) -> str:
        return self.files[file] if file is not None else ""

    def counts(self, table: str) -> dict[str, int]:
        """The number of rows of the upload by result."""
        sql = f'SELECT act, count(*) FROM "{table}" WHERE file IS NOT NULL GROUP BY act'
        counts: dict[str, int] = dict(self.execute(sql).fetchall())
        return {
            "rows": sum(counts.values()),
            "added": counts.get(NEW, 0),
            "same": counts.get(SAME, 0),
            "replaced": counts.get(REPLACE, 0),
            "faulty": counts.get(FAULTY, 0),
        }
