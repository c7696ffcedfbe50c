"""Values of columns as they stand in a backup: the same whichever database they come from, exact to the last bit, and
one canonical line for each row, over which hashes are taken."""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

#: Django's name of a column's type -> how its values stand in a backup.
KINDS = {
    "AutoField": "integer", "BigAutoField": "integer", "SmallAutoField": "integer",
    "IntegerField": "integer", "BigIntegerField": "integer", "SmallIntegerField": "integer",
    "PositiveIntegerField": "integer", "PositiveBigIntegerField": "integer", "PositiveSmallIntegerField": "integer",
    "CharField": "text", "TextField": "text", "SlugField": "text", "FilePathField": "text",
    "BooleanField": "boolean", "FloatField": "float", "JSONField": "json", "DateTimeField": "datetime",
    "UUIDField": "uuid", "GenericIPAddressField": "text", "BinaryField": "bytes",
}  # fmt: skip
#: Numbers from here on are written out in full by PostgreSQL and with an exponent by Python.
_WHOLE = 1e16

Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class Column:
    name: str
    kind: str


# ---- from a database ----------------------------------------------------------------------------------------


def _float_out(value: Any) -> Any:
    value = float(value)
    return value if math.isfinite(value) else repr(value)


def _datetime_out(value: datetime) -> str:
    """In UTC; without a zone it is UTC already, as in SQLite."""
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat(timespec="microseconds")


_OUT: dict[str, Convert] = {
    "boolean": bool,
    "float": _float_out,
    "datetime": _datetime_out,
    "uuid": lambda value: uuid.UUID(str(value)).hex,
    "bytes": lambda value: base64.b64encode(bytes(value)).decode(),
}


def leaving(columns: Sequence[Column]) -> Callable[[Sequence[Any]], list[Any]]:
    """What turns a row as the database gives it into one of a backup."""
    return _converter([_OUT.get(column.kind) for column in columns])


def _converter(by_place: Sequence[Convert | None]) -> Callable[[Sequence[Any]], list[Any]]:
    wanted = [(place, convert) for place, convert in enumerate(by_place) if convert is not None]

    def convert_row(row: Sequence[Any]) -> list[Any]:
        values = list(row)
        for place, convert in wanted:
            if values[place] is not None:
                values[place] = convert(values[place])
        return values

    return convert_row


# ---- into a database ----------------------------------------------------------------------------------------


def _sqlite_datetime(value: str) -> str:
    """As Django writes it: the fraction only where there is one."""
    return str(datetime.fromisoformat(value))


_SQLITE: dict[str, Convert] = {
    "float": float,
    "datetime": _sqlite_datetime,
    "bytes": lambda value: base64.b64decode(value, validate=True),
}
_POSTGRES: dict[str, Convert] = {
    "float": float,
    "datetime": lambda value: f"{datetime.fromisoformat(value).isoformat(sep=' ')}+00",
    "bytes": lambda value: "\\x" + base64.b64decode(value, validate=True).hex(),
}


def entering(columns: Sequence[Column], vendor: str, source: str) -> Callable[[Sequence[Any]], list[Any]]:
    """What turns a row of a backup into one for the database. JSON that comes from another database is written as
    Django writes it in SQLite."""
    table = _POSTGRES if vendor == "postgresql" else _SQLITE
    if vendor != "postgresql" and source != vendor:
        table = {**table, "json": lambda value: json.dumps(json.loads(value))}
    return _converter([table.get(column.kind) for column in columns])


# ---- lines and hashes ---------------------------------------------------------------------------------------


def line_of(row: Sequence[Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def hashed_line(columns: Sequence[Column]) -> Callable[[Sequence[Any]], bytes]:
    """The line over which hashes are taken. PostgreSQL keeps JSON without the order of its keys and writes large
    numbers in its own way, so both are made the same here; every other value stands as it is."""
    places = [place for place, column in enumerate(columns) if column.kind == "json"]
    if not places:
        return line_of

    def line(row: Sequence[Any]) -> bytes:
        values = list(row)
        for place in places:
            if values[place] is not None:
                values[place] = _canonical(values[place])
        return line_of(values)

    return line


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text, parse_float=_number), sort_keys=True, separators=(",", ":"))


def _number(text: str) -> float | int:
    value = float(text)
    if value == 0:
        return 0.0  # there is no negative zero in PostgreSQL's JSON
    return int(Decimal(text)) if _WHOLE <= abs(value) < math.inf else value
