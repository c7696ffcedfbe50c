"""Finds the rows with the names of the columns below titles, and names that are in two rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .numbers import is_number

#: A name of a column has at most so many words.
_MOST_WORDS = 60


def find_header(rows: list[list[Any]]) -> tuple[int, int]:
    """(rows above the names, rows with names) in the first rows of a sheet. A title is a row with one text, in the
    first column, above a row of names. The names are in two rows if the lower ones repeat below others."""
    above = 0
    while above + 1 < len(rows) and _is_title(rows[above]):
        above += 1
    if above and not (_is_header(rows[above]) and len(_list_filled(rows[above])) > 1):
        above = 0
    if above + 2 < len(rows) and _has_two_rows(*rows[above : above + 3]):
        return above, 2
    return above, 1


def _list_filled(cells: list[Any]) -> list[str]:
    return [text for cell in cells if cell is not None and (text := str(cell).strip())]


def _is_title(cells: list[Any]) -> bool:
    """Whether only the first cell has a text, or none."""
    return not _list_filled(cells[1:])


def _is_header(cells: list[Any]) -> bool:
    return all(not is_number(text) and len(text.split()) <= _MOST_WORDS for text in _list_filled(cells))


def _has_two_rows(upper: list[Any], lower: list[Any], below: list[Any]) -> bool:
    """Whether `upper` has groups of columns, and `lower` the names in each, which repeat."""
    groups, names = _list_filled(upper), _list_filled(lower)
    if not (len(groups) > 1 and _is_header(upper) and _is_header(lower)):
        return False
    repeats = any(count > 1 for count in Counter(names).values())
    is_merged = len(groups) < max(len(names), len(_list_filled(below))) or len(set(groups)) < len(groups)
    return repeats and is_merged and Counter(names) != Counter(_list_filled(below))
