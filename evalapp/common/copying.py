"""Rows in the text format of PostgreSQL's COPY."""

from collections.abc import Sequence
from typing import Any


def copy_line(row: Sequence[Any]) -> str:
    """Return the line of a row. JSON, UUIDs and times must be texts."""
    return "\t".join(map(_field, row)) + "\n"


def _field(value: Any) -> str:
    if value is None:
        return "\\N"
    if value is True or value is False:
        return "t" if value else "f"
    if type(value) is str:
        if "\\" in value:
            value = value.replace("\\", "\\\\")
        if "\n" in value:
            value = value.replace("\n", "\\n")
        if "\t" in value:
            value = value.replace("\t", "\\t")
        if "\r" in value:
            value = value.replace("\r", "\\r")
        return value
    return repr(value)
