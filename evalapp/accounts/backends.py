"""Django's password backend, which reads the user of a request by a plain SQL statement because building the query
takes longer than running it."""

from functools import lru_cache
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.db import connections, router

from .models import User


@lru_cache(maxsize=1)
def _columns() -> tuple[tuple[str, ...], str]:
    fields = User._meta.concrete_fields
    return tuple(field.attname for field in fields), ", ".join(f'"{field.column}"' for field in fields)


class PasswordBackend(ModelBackend):
    def get_user(self, user_id: Any) -> User | None:
        alias = router.db_for_read(User)
        names, columns = _columns()
        connection = connections[alias]
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT {columns} FROM "{User._meta.db_table}" WHERE id = %s', [user_id])
            row = cursor.fetchone()
        if row is None:
            return None
        values = [
            convert(value, connection) for convert, value in zip(_converters(connection.vendor), row, strict=True)
        ]
        user = User.from_db(alias, names, values)
        return user if self.user_can_authenticate(user) else None


@lru_cache(maxsize=4)
def _converters(vendor: str) -> list[Any]:
    """Return a function per column that converts a value of the database to the field's Python value."""
    from django.db import connection

    columns = [field.get_col(User._meta.db_table) for field in User._meta.concrete_fields]
    return [
        _chain([*connection.ops.get_db_converters(column), *column.get_db_converters(connection)], column)
        for column in columns
    ]


def _chain(steps: list[Any], column: Any) -> Any:
    def convert(value: Any, connection: Any) -> Any:
        for step in steps:
            value = step(value, column, connection)
        return value

    return convert
