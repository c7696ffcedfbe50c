"""Runs hand-written SQL on PostgreSQL and SQLite; on PostgreSQL as prepared statements."""

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Any

from django.conf import settings
from django.utils.dateparse import parse_datetime

Statement = tuple[str, Sequence[Any]]


def is_postgres(cursor: Any) -> bool:
    # `cursor.db` instead of `django.db.connection`: the proxy is slow, and this is called forty times per answer.
    return cursor.db.vendor == "postgresql"


def parse_moment(value: Any) -> datetime:
    if isinstance(value, str):
        parsed = parse_datetime(value)
        assert parsed is not None
        value = parsed
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def loads(value: Any) -> Any:
    return json.loads(value) if isinstance(value, (str, bytes)) else value


def _can_prepare(cursor: Any) -> bool:
    return is_postgres(cursor) and not settings.DATABASE_POOLER


def run(cursor: Any, sql: str, values: Sequence[Any]) -> None:
    """Execute one statement. On PostgreSQL it is prepared, because planning these joins takes longer than running
    them; DATABASE_POOLER turns that off."""
    if _can_prepare(cursor):
        name = _prepare(cursor, sql)
        cursor.execute(f"EXECUTE {name} ({_marks(len(values))})", values)
    else:
        cursor.execute(sql, _adapted(cursor, values))


def run_batch(cursor: Any, statements: Sequence[Statement]) -> None:
    """Execute statements in order, on PostgreSQL in one round trip. The cursor has the rows of the last one."""
    if not is_postgres(cursor):
        for sql, row in statements:
            cursor.execute(sql, _adapted(cursor, row))
        return
    if _can_prepare(cursor):
        calls = [f"EXECUTE {_prepare(cursor, sql)} ({_marks(len(row))})" for sql, row in statements]
    else:
        calls = [sql for sql, _ in statements]
    cursor.execute("; ".join(calls), [value for _, row in statements for value in row])


def _adapted(cursor: Any, values: Sequence[Any]) -> list[Any]:
    """Convert datetimes to the form that this database stores."""
    adapt = cursor.db.ops.adapt_datetimefield_value
    return [adapt(value) if isinstance(value, datetime) else value for value in values]


@lru_cache(maxsize=64)
def _marks(count: int) -> str:
    return ", ".join(["%s"] * count)


@lru_cache(maxsize=256)
def _preparation(sql: str) -> tuple[str, str]:
    name = f"judging_{hashlib.sha256(sql.encode()).hexdigest()[:16]}"
    numbers = count(1)
    body = re.sub("%s", lambda _: f"${next(numbers)}", sql)
    return name, f"PREPARE {name} AS {body}"


def _prepare(cursor: Any, sql: str) -> str:
    """Return the name of the prepared statement; prepare it on first use in each connection."""
    name, statement = _preparation(sql)
    database = cursor.db
    raw, known = getattr(database, "judging_statements", (None, None))
    if raw is not database.connection or known is None:
        known = set[str]()
        database.judging_statements = (database.connection, known)
    if name not in known:
        cursor.execute(statement)
        known.add(name)
    return name
