"""Checks the fields of a row: each reader returns a value for staging, and reports errors to `bad`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from evalapp.names import explain_breaking

from .faults import Row
from .writer import EXACT, plain_json

#: (field, message)
Bad = Callable[[str, str], None]

MAX_KEY, MAX_NAME = 200, 100
#: Represents a missing step, because NULL cannot be part of a unique key.
NO_STEP = -1
MAX_STEP = 2**63 - 1
#: Means, squares and sums of larger numbers overflow 64 bits.
LARGEST = 1e150


def read_key(row: Row, name: str, bad: Bad, longest: int = MAX_KEY) -> str | None:
    value = row.get(name)
    if type(value) is str and 0 < len(value) <= longest:
        if value.isprintable() or not (why := explain_breaking(value)):
            return value
        bad(name, f"{name} holds {why}")
        return None
    if value is None or value == "":
        bad(name, f"{name} is missing." if value is None else f"{name} is empty.")
    elif type(value) is str:
        bad(name, f"{name} is longer than {longest} characters.")
    elif is_whole(value):
        return str(value)  # ids as numbers, as written by data frames
    else:
        bad(name, f"{name} must be text; write it in quotes.")
    return None


def read_text(row: Row, name: str, bad: Bad) -> str:
    value = row.get(name)
    if type(value) is str:
        return value
    bad(name, f"{name} is missing." if value is None else f"{name} must be text; write it in quotes.")
    return ""


def read_texts(row: Row, name: str, bad: Bad) -> list[str]:
    value = row.get(name)
    if value is None:
        return []
    if type(value) is not list:
        bad(name, f'{name} must be a list of texts, such as ["first", "second"].')
        return []
    for text in value:
        if type(text) is not str:
            bad(name, f"{name} must hold texts only.")
            return []
    return value


def read_text_or_texts(row: Row, name: str, bad: Bad) -> list[str]:
    """A list of texts; a single text is a list with one, an empty text an empty list."""
    value = row.get(name)
    if type(value) is str:
        return [value] if value.strip() else []
    return read_texts(row, name, bad)


def read_step(row: Row, name: str, bad: Bad) -> int:
    value = row.get(name)
    if value is None:
        return NO_STEP
    if type(value) is float and value.is_integer() and abs(value) <= EXACT:
        value = int(value)  # data frames write columns of integers with gaps as floats such as 100.0
    if type(value) is int and 0 <= value <= MAX_STEP:
        return value
    bad(name, f"{name} must be a whole number from 0, or null.")
    return NO_STEP


def read_number(value: Any, name: str, bad: Bad) -> float | None:
    """`value` as a 64-bit float. None, reported to `bad`, if it is not a number or would change."""
    if type(value) is not int and (type(value) is not float or not math.isfinite(value)):
        bad(name, f"{name} must be a number.")
        return None
    if abs(value) > LARGEST:
        bad(name, f"{name} is beyond {LARGEST:g}; statistics cannot be computed with such numbers. Rescale it.")
        return None
    number = float(value)
    if number != value:
        bad(name, f"{name} is {value}; a number of 64 bits has about 16 digits and would be {int(number)}. Round it.")
        return None
    return number


def is_whole(value: Any) -> bool:
    """Whether it is an integer of 64 bits."""
    return type(value) is int and -(2**63) <= value < 2**63


def read_flag(row: Row, bad: Bad) -> int:
    value = row.get("simulated", False)
    if value is None:
        return 0
    if type(value) is not bool:
        bad("simulated", "simulated must be true or false.")
    return int(bool(value))


def read_meta(row: Row, known: frozenset[str], bad: Bad) -> str:
    """`meta` as JSON text, with the unknown columns of the row added."""
    meta = row.get("meta")
    if meta is None:
        meta = {}
    elif type(meta) is not dict:
        bad("meta", 'meta must be an object, such as {"domain": "food"}.')
        meta = {}
    if not row.keys() <= known:
        meta = dict(meta)
        for name in row:
            if name not in known:
                if name in meta and meta[name] != row[name]:
                    bad(name, f"{name} is in the row and, with another value, in meta. Keep one.")
                meta[name] = row[name]
    return plain_json(meta) if meta else "{}"
