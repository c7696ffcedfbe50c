"""Attributes of rows as a dict, for responses and exports."""

from typing import Any


def read_attributes(row: Any, names: str) -> dict[str, Any]:
    """The attributes of `row` by name; `names` are separated by spaces."""
    return {name: getattr(row, name) for name in names.split()}
