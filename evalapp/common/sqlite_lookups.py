"""Case-insensitive lookups for all letters on SQLite, with the same results as on PostgreSQL.

SQLite's LIKE ignores the case of a to z only. Lookups for other letters compare both sides in capitals; lookups for a
to z stay as fast as before."""

import json
import re
from typing import Any

from django.db.backends.signals import connection_created
from django.db.models import Field, JSONField
from django.db.models.fields.json import KeyTransform

FUNCTION = "UNICODE_UPPER"
#: JSON escapes of letters outside ASCII. Django writes them on SQLite, imports do not.
_ESCAPES = re.compile(r"(?:\\[uU][0-9a-fA-F]{4})+")


def upper(text: str | None) -> str | None:
    """Return the text in capitals, letter by letter as PostgreSQL does: "ß" stays, and so does the length."""
    if not isinstance(text, str):
        return text
    if "\\u" in text or "\\U" in text:  # "\U" in a text that SQLite's own UPPER has changed
        text = _ESCAPES.sub(_unescape, text)
    capitals = text.upper()
    if len(capitals) != len(text):
        capitals = "".join(capital if len(capital := letter.upper()) == 1 else letter for letter in text)
    return capitals


def _unescape(match: re.Match[str]) -> str:
    try:
        letters: str = json.loads(f'"{match[0].lower()}"')
        letters.encode()
    except ValueError:  # half of a surrogate pair
        return match[0]
    return letters


class _AllLetters:
    def as_sqlite(self: Any, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        if not isinstance(self.rhs, str) or self.rhs.isascii():
            sql, params = self.as_sql(compiler, connection)
            return sql, list(params)
        left, left_params = self.process_lhs(compiler, connection)
        right, right_params = self.process_rhs(compiler, connection)
        return f"{FUNCTION}({left}) LIKE {FUNCTION}({right}) ESCAPE '\\'", [*left_params, *right_params]


def _create_function(connection: Any, **_: Any) -> None:
    if connection.vendor == "sqlite":
        connection.connection.create_function(FUNCTION, 1, upper, deterministic=True)


def register() -> None:
    """Replace Django's case-insensitive lookups, also for JSON columns and their keys."""
    connection_created.connect(_create_function, dispatch_uid="evalapp.common.sqlite_lookups")
    for owner in (Field, JSONField, KeyTransform):
        for lookup in list(vars(owner)["class_lookups"].values()):
            if lookup.lookup_name in ("iexact", "icontains", "istartswith", "iendswith"):
                owner.register_lookup(type(lookup.__name__, (_AllLetters, lookup), {}))
