"""Rows as lines of JSON, and why a value cannot be written as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from evalapp.client.errors import InvalidArgument

#: Predicate of error messages about a text that cannot be encoded.
BAD_SURROGATE = (
    "holds half a surrogate pair, which UTF-8 cannot encode. Replace it: text.encode('utf-8', 'replace').decode()"
)


def explain_unsendable(value: Any, error: Exception) -> str:
    """Return the reason why `value` cannot be written as JSON, given the `error` of the attempt."""
    place = _find_bad_surrogate(value)
    if place is not None:
        return f"{place.lstrip('.') or 'it'} {BAD_SURROGATE}"
    if "float values are not JSON" in str(error):
        return f"{error}. Leave such a number out, or write None where it may be missing"
    return str(error)


def _find_bad_surrogate(value: Any, place: str = "") -> str | None:
    """Return the place of the first text with half a surrogate pair."""
    if isinstance(value, str):
        return place if any("\ud800" <= letter <= "\udfff" for letter in value) else None
    parts: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        for name, part in value.items():
            if _find_bad_surrogate(str(name)) is not None:
                return f"{place} (a name in it)"
            parts.append((f"{place}.{name}", part))
    elif isinstance(value, list | tuple):
        parts = [(f"{place}[{number}]", part) for number, part in enumerate(value)]
    places = (_find_bad_surrogate(part, where) for where, part in parts)
    return next((place for place in places if place is not None), None)


def dump_line(row: Mapping[str, Any], number: int, of: str = "") -> bytes:
    """Return `row` as a line of NDJSON. Values of numpy are converted, missing values (nan, NA) become null. Raises
    `InvalidArgument` with the `number` of the row, in the table `of`, for values that JSON does not support."""
    try:
        try:
            return _dump(row)
        except ValueError:
            return _dump(_replace_nan(row))
    except (TypeError, ValueError) as error:
        place = f"row {number} of {of}" if of else f"row {number}"
        raise InvalidArgument(f"{place} cannot be written as JSON: {explain_unsendable(row, error)}") from error


def _dump(row: Any) -> bytes:
    return json.dumps(row, ensure_ascii=False, allow_nan=False, default=_convert_value).encode() + b"\n"


def _convert_value(value: Any) -> Any:
    """Convert a value of numpy or pandas, without importing them."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    for convert in ("tolist", "item"):
        if type(value).__module__.startswith("numpy") and hasattr(value, convert):
            return getattr(value, convert)()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _replace_nan(value: Any) -> Any:
    """Replace nan by None in nested values."""
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, Mapping):
        return {name: _replace_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nan(part) for part in value]
    if value is None or isinstance(value, str | int):
        return value
    return _replace_nan(_convert_value(value))
