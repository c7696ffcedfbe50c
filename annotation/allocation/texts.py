"""Texts that a database can store: PostgreSQL accepts no NUL, and UTF-8 no unpaired surrogates."""

from collections.abc import Mapping
from typing import Any


def is_storable(value: Any) -> bool:
    """Whether every text inside `value` (texts, numbers, lists, objects) can be stored unchanged."""
    if isinstance(value, str):
        return "\x00" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, Mapping):
        return all(is_storable(key) and is_storable(inner) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return all(is_storable(inner) for inner in value)
    return True


UNSTORABLE = "This contains a character that cannot be stored (NUL or an unpaired surrogate). Remove it."
