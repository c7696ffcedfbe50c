"""Patterns of column names, such as `{system}_{aspect}`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_PLACE = re.compile(r"\{(\w+)\}")


class AmbiguousPattern(ValueError):
    """A column can be read in two ways: `column`, and both readings."""

    def __init__(self, column: str, first: dict[str, str], second: dict[str, str]) -> None:
        super().__init__(column)
        self.column, self.first, self.second = column, first, second


def list_readings(pattern: str, column: str) -> list[dict[str, str]]:
    """Every way to read a column's name by a pattern."""
    parts = _PLACE.split(pattern)
    literals, names = parts[0::2], parts[1::2]
    if not column.startswith(literals[0]):
        return []
    #: Where the name has been read to, and what was read.
    readings: dict[int, list[dict[str, str]]] = {len(literals[0]): [{}]}
    for name, literal in zip(names, literals[1:], strict=True):
        following: dict[int, list[dict[str, str]]] = {}
        for start, found in readings.items():
            for end in _find_ends(column, start, literal, is_last=name == names[-1]):
                text = column[start:end].strip()
                if text:
                    following.setdefault(end + len(literal), []).extend({**one, name: text} for one in found)
        readings = following
    return readings.get(len(column), [])


def _find_ends(column: str, start: int, literal: str, is_last: bool) -> Iterable[int]:
    if is_last:
        return [len(column) - len(literal)] if column.endswith(literal) and len(column) - len(literal) > start else []
    return [start + 1 + match.start() for match in re.finditer(f"(?={re.escape(literal)})", column[start + 1 :])]


def match_pattern(pattern: str, columns: Iterable[str]) -> dict[str, dict[str, str]]:
    """The parts of each column that matches. A name that can be read in several ways, as `gpt_4_fluency`, is read so
    that its parts occur in most columns. Raises `AmbiguousPattern` if that does not decide."""
    every = {column: readings for column in columns if (readings := list_readings(pattern, column))}
    counts = Counter((name, text) for readings in every.values() for one in readings for name, text in one.items())
    matched = {}
    for column, readings in every.items():
        ranked = sorted(readings, key=lambda one: -_weigh(one, counts))
        if len(ranked) > 1 and _weigh(ranked[0], counts) == _weigh(ranked[1], counts):
            raise AmbiguousPattern(column, ranked[0], ranked[1])
        matched[column] = ranked[0]
    return matched


def split_cell(pattern: str, text: str) -> dict[str, str]:
    """The parts of a cell; empty if it has other ones. Of several ways to read it, the one whose first parts are
    longest: `{item}_{system}` reads `talk_7_gpt` as the item `talk_7`."""
    return max(list_readings(pattern, text.strip()), key=lambda one: [len(part) for part in one.values()], default={})


def _weigh(reading: dict[str, str], counts: Counter[tuple[str, str]]) -> int:
    product = 1
    for part in reading.items():
        product *= counts[part]
    return product
