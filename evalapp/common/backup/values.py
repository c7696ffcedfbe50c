"""Column values in a backup: independent of the database and exact to the last bit. Each row has one canonical line,
over which hashes are computed."""

import base64
import json
import math
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple

Kind = Literal["integer", "text", "boolean", "float", "json", "datetime", "uuid", "bytes"]
#: Django's internal type of a field -> kind of value in a backup.
KINDS: dict[str, Kind] = {
    "AutoField": "integer", "BigAutoField": "integer", "SmallAutoField": "integer",
    "IntegerField": "integer", "BigIntegerField": "integer", "SmallIntegerField": "integer",
    "PositiveIntegerField": "integer", "PositiveBigIntegerField": "integer", "PositiveSmallIntegerField": "integer",
    "CharField": "text", "TextField": "text", "SlugField": "text", "FilePathField": "text",
    "BooleanField": "boolean", "FloatField": "float", "JSONField": "json", "DateTimeField": "datetime",
    "UUIDField": "uuid", "GenericIPAddressField": "text", "BinaryField": "bytes",
}  # fmt: skip
#: From here on, PostgreSQL writes numbers in full and Python with an exponent.
_WHOLE = 1e16

Convert = Callable[[Any], Any]
ConvertRow = Callable[[Sequence[Any]], list[Any]]


class Column(NamedTuple):
    name: str
    kind: Kind


def _export_float(value: Any) -> Any:
    value = float(value)
    return value if math.isfinite(value) else repr(value)


def _export_datetime(value: datetime) -> str:
    """Convert to UTC; values without a time zone (SQLite) are in UTC."""
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat(timespec="microseconds")


_EXPORT: dict[str, Convert] = {
    "boolean": bool,
    "float": _export_float,
    "datetime": _export_datetime,
    "uuid": lambda value: uuid.UUID(str(value)).hex,
    "bytes": lambda value: base64.b64encode(bytes(value)).decode(),
}
_SQLITE: dict[str, Convert] = {
    "float": float,
    "datetime": lambda value: str(datetime.fromisoformat(value)),  # without a zero fraction, like Django
    "bytes": lambda value: base64.b64decode(value, validate=True),
}
_POSTGRES: dict[str, Convert] = {
    "float": float,
    "datetime": lambda value: f"{datetime.fromisoformat(value).isoformat(sep=' ')}+00",
    "bytes": lambda value: "\\x" + base64.b64decode(value, validate=True).hex(),
}


def make_exporter(columns: Sequence[Column]) -> ConvertRow:
    """Return a function that converts a row from the database to a row of a backup."""
    return _make_converter(columns, _EXPORT)


def make_importer(columns: Sequence[Column], vendor: str, source: str) -> ConvertRow:
    """Return a function that converts a row of a backup to one for the database `vendor`. JSON from another database
    (`source`) is written as Django writes it in SQLite."""
    converters = _POSTGRES if vendor == "postgresql" else _SQLITE
    if vendor != "postgresql" and source != vendor:
        converters = {**converters, "json": lambda value: json.dumps(json.loads(value))}
    return _make_converter(columns, converters)


def _make_converter(columns: Sequence[Column], converters: dict[str, Convert]) -> ConvertRow:
    steps = [(place, converters[column.kind]) for place, column in enumerate(columns) if column.kind in converters]

    def convert_row(row: Sequence[Any]) -> list[Any]:
        values = list(row)
        for place, convert in steps:
            if values[place] is not None:
                values[place] = convert(values[place])
        return values

    return convert_row


def dump_row(row: Sequence[Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def make_hash_dumper(columns: Sequence[Column]) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that gives the line of a row for hashes. PostgreSQL does not preserve the order of JSON keys
    and writes large numbers differently, so JSON is normalised."""
    if not any(column.kind == "json" for column in columns):
        return dump_row
    convert = _make_converter(columns, {"json": _normalise_json})
    return lambda row: dump_row(convert(row))


def _normalise_json(text: str) -> str:
    return json.dumps(json.loads(text, parse_float=_parse_number), sort_keys=True, separators=(",", ":"))


def _parse_number(text: str) -> float | int:
    value = float(text)
    if value == 0:
        return 0.0  # PostgreSQL's JSON has no negative zero
    return int(Decimal(text)) if _WHOLE <= abs(value) < math.inf else value
