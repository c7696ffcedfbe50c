"""Checks the fields of a row: each reader returns a value for staging, and reports errors to `bad`."""

import math
from collections.abc import Callable
from typing import Any

from evalapp.names import explain_breaking
from evalapp.translation import gettext as _

from .faults import Row
from .writer import EXACT, encode_plain

#: (field, message)
Bad = Callable[[str, str], None]

MAX_KEY, MAX_NAME = 200, 100
#: Represents a missing step, because NULL cannot be part of a unique key.
NO_STEP = -1
MAX_STEP = 2**63 - 1
#: Whole numbers up to this one are exact as fractional numbers.
_EXACT = 2**53
#: Means, squares and sums of larger numbers overflow 64 bits.
LARGEST = 1e150


def read_key(row: Row, name: str, bad: Bad, longest: int = MAX_KEY) -> str | None:
    value = row.get(name)
    if type(value) is str and 0 < len(value) <= longest:
        if value.isprintable() or not (why := explain_breaking(value)):
            return value
        bad(name, _("%(name)s contains %(why)s", name=name, why=why))
        return None
    if value is None or value == "":
        bad(
            name,
            _("%(name)s is missing.", name=name) if value is None else _("%(name)s is empty.", name=name),
        )
    elif type(value) is str:
        bad(name, _("%(name)s is longer than %(longest)s characters.", name=name, longest=longest))
    elif is_whole(value):
        return str(value)  # ids as numbers, as written by data frames
    elif type(value) is float and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))  # data frames make numbers of a column with missing values fractional
    else:
        bad(name, _("%(name)s must be text; write it in quotes.", name=name))
    return None


def read_text(row: Row, name: str, bad: Bad) -> str:
    value = row.get(name)
    if type(value) is str:
        return value
    bad(
        name,
        _("%(name)s is missing.", name=name)
        if value is None
        else _("%(name)s must be text; write it in quotes.", name=name),
    )
    return ""


def read_texts(row: Row, name: str, bad: Bad) -> list[str]:
    value = row.get(name)
    if value is None:
        return []
    if type(value) is not list:
        bad(name, _('%(name)s must be a list of texts, such as ["first", "second"].', name=name))
        return []
    for text in value:
        if type(text) is not str:
            bad(name, _("%(name)s can only contain texts.", name=name))
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
    bad(name, _("%(name)s must be a whole number from 0, or null.", name=name))
    return NO_STEP


def read_number(value: Any, name: str, bad: Bad) -> float | None:
    """`value` as a 64-bit float. None, reported to `bad`, if it is not a number or would change."""
    if type(value) is not int and (type(value) is not float or not math.isfinite(value)):
        bad(name, _("%(name)s must be a number.", name=name))
        return None
    if abs(value) > LARGEST:
        bad(
            name,
            _(
                "%(name)s is beyond %(largest)g; statistics cannot be computed with such numbers. Rescale it.",
                name=name,
                largest=LARGEST,
            ),
        )
        return None
    number = float(value)
    if number != value:
        bad(
            name,
            _(
                "%(name)s is %(value)s; a number of 64 bits has about 16 digits and would be %(number)d. Round it.",
                name=name,
                value=value,
                number=int(number),
            ),
        )
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
        bad("simulated", _("simulated must be true or false."))
    return int(bool(value))


def read_meta(row: Row, known: frozenset[str], bad: Bad) -> str:
    """`meta` as JSON text, with the unknown columns of the row added."""
    meta = row.get("meta")
    if meta is None:
        meta = {}
    elif type(meta) is not dict:
        bad("meta", _('meta must be an object, such as {"domain": "food"}.'))
        meta = {}
    if not row.keys() <= known:
        meta = dict(meta)
        for name in row:
            if name not in known:
                if name in meta and meta[name] != row[name]:
                    bad(
                        name,
                        _("%(name)s is in the row and, with another value, in meta. Remove either.", name=name),
                    )
                meta[name] = row[name]
    return encode_plain(meta) if meta else "{}"
