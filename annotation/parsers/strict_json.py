"""Strict JSON as in RFC 8259, explanations for lines that are not JSON, and the identifying values of faulty rows."""

import json
import math
import re
from collections import Counter
from typing import Any

import orjson

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

from .faults import Row

_COLON = re.compile(rb'"\s*:')
_LONG_NUMBER = re.compile(rb"\d{19}")
_NOT_JSON = re.compile(rb"(?<![\w\"])(NaN|-?Infinity)(?![\w\"])")
#: Longer JSON is read by the slow reader.
_LONG = 1 << 16
NUL = gettext_noop("A text has a NUL character (\\u0000), which databases cannot store. Remove it.")
HALF = gettext_noop(
    "A text has half of a surrogate pair (%(half)s), which UTF-8 cannot encode. Write the whole pair, or remove it."
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
#: The identifying columns of tables that other rows refer to.
KEYS = ("id", "item", "system", "step", "evaluator")
_MEMBER = re.compile(rb'"(' + "|".join(KEYS).encode() + rb')"\s*:\s*("(?:[^"\\]|\\.)*"|\d{1,19}(?![\d.eE]))')
#: The maximum depth of nesting; deeper values could be stored but not exported.
DEEPEST = 100


class DoubledKey(ValueError):
    """An object has the same key twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise DoubledKey(_("the key “%(key)s” occurs twice", key=twice[:200]))
    return row


def _refuse(constant: str) -> Any:
    raise ValueError(_("%(constant)s is not JSON; write null or a number", constant=constant))


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(_("%(number)s is too large", number=text[:40]))
    return number


def _keys(value: Any) -> int:
    """The number of keys in a JSON value at any depth."""
    if isinstance(value, dict):
        return len(value) + sum(_keys(v) for v in value.values() if isinstance(v, (dict, list)))
    if isinstance(value, list):
        return sum(_keys(v) for v in value if isinstance(v, (dict, list)))
    return 0


def _is_deep(value: Any) -> bool:
    level = [value]
    for _depth in range(DEEPEST + 1):
        level = [part for part in level if isinstance(part, (dict, list))]
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return any(isinstance(part, (dict, list)) for part in level)


def decode_object(raw: bytes) -> Any:
    """JSON as strict as RFC 8259: no NaN, no duplicate keys, exact integers. Raises ValueError with the error.

    orjson is fast, but keeps the last of two equal keys and rounds integers beyond 64 bits. A count of the keys in the
    raw bytes shows whether that may have happened; only then a slower reader is used."""
    if len(raw) > _LONG:
        return _decode_slowly(raw)
    value = orjson.loads(raw)
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and _is_deep(value):
        raise ValueError(_("it is nested too deeply"))
    colons = len(_COLON.findall(raw))
    exact = type(value) is dict and colons == len(value)
    if not exact and colons == _keys(value):
        exact = _LONG_NUMBER.search(raw) is None
    elif exact and _LONG_NUMBER.search(raw) is not None:
        exact = False
    return value if exact else _decode_slowly(raw)


def _decode_slowly(raw: bytes) -> Any:
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_pairs, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise ValueError(_("it is nested too deeply")) from error
    if len(raw) > _LONG and _is_deep(value):
        raise ValueError(_("it is nested too deeply"))
    if len(raw) > _LONG and _find_half(value) is not None:
        raise ValueError(_("a text has half of a surrogate pair"))
    return value


def _find_half(value: Any) -> str | None:
    """Return the first unpaired surrogate as JSON writes it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"\\u{ord(error.object[error.start]):04x}"
    return None


def find_half_pair(raw: bytes) -> str | None:
    """The unpaired surrogate in this JSON as written there, if that is the error."""
    try:
        return _find_half(json.loads(raw))
    except (ValueError, RecursionError):
        return None


def identify(row: Any) -> Row:
    """The identifying values of a row."""
    if not isinstance(row, dict):
        return {}
    key = {name: row[name] for name in KEYS if type(row.get(name)) in (str, int)}
    return {
        name: value
        for name, value in key.items()
        if type(value) is int or ("\0" not in value and _SURROGATE.search(value) is None)
    }


def identify_line(raw: bytes) -> Row:
    """The identifying values of a line that is not JSON, from its first members with these names."""
    key: Row = {}
    for name, value in _MEMBER.findall(raw):
        if name.decode() not in key:
            try:
                key[name.decode()] = json.loads(value.decode(errors="replace"))
            except ValueError:
                continue
    return identify(key)


def explain_json(raw: bytes, error: ValueError) -> str:
    try:
        raw.decode()
    except UnicodeDecodeError as wrong:
        return explain_utf8(raw, wrong)
    if (half := find_half_pair(raw)) is not None:
        return _(HALF, half=half)
    is_possible = b"NaN" in raw or b"Infinity" in raw  # much faster than the expression
    if is_possible and (constant := _NOT_JSON.search(raw)) is not None:
        return _("%(constant)s is not JSON. Write null, or leave the row out.", constant=constant[1].decode())
    if isinstance(error, orjson.JSONDecodeError):
        return _(
            "This is not JSON: %(msg)s (column %(pos)s). Write one JSON object per line.",
            msg=error.msg,
            pos=error.pos + 1,
        )
    return _("This is not JSON: %(error)s.", error=error)


def explain_utf8(raw: bytes, error: UnicodeDecodeError) -> str:
    return _(
        "Not UTF-8: byte 0x%(byte)s at byte %(start)s of the line. Save the file as UTF-8 (it looks "
        "like Latin-1 or Windows-1252).",
        byte=f"{raw[error.start]:02X}",
        start=error.start + 1,
    )


def has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any("\0" in key or has_nul(part) for key, part in value.items())
    return isinstance(value, list) and any(has_nul(part) for part in value)
