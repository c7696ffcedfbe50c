"""Searches that ignore case find the same on SQLite as on PostgreSQL: SQLite's LIKE ignores the case of a to z alone. A
search for other letters compares both sides in capitals; one for a to z stays as fast as it was."""

from __future__ import annotations

import json
import re
from typing import Any

from django.db.models import Field, JSONField
from django.db.models.fields.json import KeyTransform

FUNCTION = "UNICODE_UPPER"
#: How JSON may write letters outside ASCII; Django stores them so on SQLite, imports do not.
_ESCAPES = re.compile(r"(?:\\[uU][0-9a-fA-F]{4})+")


def upper(text: str | None) -> str | None:
    """Capitals letter by letter, as PostgreSQL makes them: “ß” stays what it is, and so does a text's length."""
    if not isinstance(text, str):
        return text
    if "\\u" in text or "\\U" in text:  # the latter in a text that SQLite's own function has made to capitals
        text = _ESCAPES.sub(_unescape, text)
    found = text.upper()
    if len(found) != len(text):
        found = "".join(great if len(great := letter.upper()) == 1 else letter for letter in text)
    return found


def _unescape(found: re.Match[str]) -> str:
    try:
        letters: str = json.loads(f'"{found[0].lower()}"')
        letters.encode()
    except ValueError:  # half of a surrogate pair
        return found[0]
    return letters


class _AllLetters:
    def as_sqlite(self: Any, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        if not isinstance(self.rhs, str) or self.rhs.isascii():
            sql, params = self.as_sql(compiler, connection)
            return sql, list(params)
        left, left_params = self.process_lhs(compiler, connection)
        right, right_params = self.process_rhs(compiler, connection)
        return f"{FUNCTION}({left}) LIKE {FUNCTION}({right}) ESCAPE '\\'", [*left_params, *right_params]


def register() -> None:
    """In place of Django's lookups that ignore case, of JSON columns and their members too."""
    for owner in (Field, JSONField, KeyTransform):
        for lookup in list(vars(owner)["class_lookups"].values()):
            if lookup.lookup_name in ("iexact", "icontains", "istartswith", "iendswith"):
                owner.register_lookup(type(lookup.__name__, (_AllLetters, lookup), {}))
