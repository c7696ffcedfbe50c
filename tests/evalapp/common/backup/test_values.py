"""Values are written to and read from a database exactly, and hashes are equal for both databases."""

from __future__ import annotations

import json
import math
import struct
import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.apps import apps
from hypothesis import given
from hypothesis import strategies as st

from evalapp.common.backup import tables, values
from evalapp.common.backup.values import Column


def there_and_back(kind: str, value: object, vendor: str = "sqlite") -> object:
    columns = [Column("c", kind)]
    line = values.dump_row(values.make_exporter(columns)([value]))
    return values.make_importer(columns, vendor, vendor)(json.loads(line))[0]


@given(st.floats())
def test_floats_keep_every_bit(value):
    back = there_and_back("float", value)
    if math.isnan(value):
        assert math.isnan(back)
    else:
        assert struct.pack("d", back) == struct.pack("d", value)


@given(st.binary())
def test_bytes_are_restored(value):
    assert there_and_back("bytes", memoryview(value)) == value
    assert there_and_back("bytes", value, "postgresql") == "\\x" + value.hex()


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)))
def test_timestamps_are_as_django_writes_them(value):
    """SQLite: `str` of the time in UTC without zone (django/db/backends/sqlite3/operations.py)."""
    assert there_and_back("datetime", value) == str(value)
    abroad = value.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert there_and_back("datetime", abroad) == str(value)
    assert datetime.fromisoformat(there_and_back("datetime", abroad, "postgresql") + ":00") == abroad


def test_uuid_values_of_both_databases_are_equal():
    number = uuid.UUID("12345678123456781234567812345678")
    assert there_and_back("uuid", number) == there_and_back("uuid", number.hex) == number.hex


def test_json_hash_ignores_what_postgresql_normalises():
    """jsonb does not preserve the order of keys, writes 1e+22 as 10000000000000000000000, and has no negative zero
    (PostgreSQL documentation, 8.14)."""
    line = values.make_hash_dumper([Column("c", "json")])
    python = '{"b": 1e+22, "a": -0.0, "n": 1.5e-07}'
    jsonb = '{"a": 0.0, "b": 10000000000000000000000, "n": 0.00000015}'
    assert line([python]) == line([jsonb])
    assert line(['{"a": 1}']) != line(['{"a": 1.0}'])
    assert line(["null"]) != line([None])


def test_json_of_another_database_is_written_as_django_does():
    enter = values.make_importer([Column("c", "json")], "sqlite", "postgresql")
    assert enter(['{"é": 1}']) == [json.dumps({"é": 1})]


def test_every_table_can_be_backed_up():
    """Each table comes after those it refers to, all columns have a known type, all keys are numbers: both databases
    sort them alike."""
    models = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}
    seen: set[str] = set()
    for table in tables.list_tables(apps):
        fields = [field for field in models[table.name]._meta.local_fields if field.is_relation]
        assert {field.related_model._meta.db_table for field in fields} - {table.name} <= seen, table.name
        seen.add(table.name)
        kinds = {column.name: column.kind for column in table.columns}
        assert kinds[table.key] == "integer", table.name
    assert set(models) - seen == set(tables.LEFT_OUT)


def test_unknown_column_type_is_named():
    from django.db import models

    field = models.DurationField(name="length")
    with pytest.raises(TypeError, match="DurationField"):
        tables.find_kind(field)
