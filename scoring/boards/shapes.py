"""What a value of a JSON document can be: small checks that are put together to the shape of a whole document. Each
yields what is wrong, with the place. What tables look like is in `kept_tables`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

_SLUG = re.compile(r"[-a-zA-Z0-9_]{1,100}")
#: (where, what is wrong there).
Fault: TypeAlias = tuple[str, str]
#: Looks at a value and its place.
Looks: TypeAlias = Callable[[Any, str], Iterator[Fault]]


def text(value: Any, where: str) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield where, "must be a text"


def slug(value: Any, where: str) -> Iterator[Fault]:
    """A name that can stand in an address."""
    if not isinstance(value, str) or not _SLUG.fullmatch(value):
        yield where, "must be letters, digits and hyphens, at most 100"


def flag(value: Any, where: str) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield where, "must be true or false"


def number(value: Any, where: str) -> Iterator[Fault]:
    """A number, or null for one that is undefined."""
    if value is None:
        return
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or abs(value) > 1e300 or not math.isfinite(value):
        yield where, "must be a number or null"


def defined(value: Any, where: str) -> Iterator[Fault]:
    """A number that is there."""
    if value is None:
        yield where, "must be a number"
    yield from number(value, where)


def one_of(*names: str) -> Looks:
    def look(value: Any, where: str) -> Iterator[Fault]:
        if value not in names:
            yield where, f"must be one of {', '.join(names)}"

    return look


def maybe(inner: Looks) -> Looks:
    return lambda value, where: iter(()) if value is None else inner(value, where)


def list_of(inner: Looks, least: int = 0) -> Looks:
    def look(value: Any, where: str) -> Iterator[Fault]:
        if not isinstance(value, list) or len(value) < least:
            yield where, "must be a list" + (f" of {least} or more" if least else "")
            return
        for place, part in enumerate(value):
            yield from inner(part, f"{where}[{place}]")

    return look


def map_of(inner: Looks) -> Looks:
    def look(value: Any, where: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield where, "must be an object"
            return
        for name, part in value.items():
            yield from inner(part, f"{where}.{name[:50]}")

    return look


def object_of(members: Mapping[str, Looks], optional: Mapping[str, Looks] | None = None) -> Looks:
    """An object with these members; others are nobody's concern."""

    def look(value: Any, where: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield where, "must be an object"
            return
        for name, inner in members.items():
            if name not in value:
                yield f"{where}.{name}", "is missing"
                return
            yield from inner(value[name], f"{where}.{name}")
        for name, inner in (optional or {}).items():
            if name in value:
                yield from inner(value[name], f"{where}.{name}")

    return look


def anything(value: Any, where: str) -> Iterator[Fault]:
    return iter(())


def both(first: Looks, then: Looks) -> Looks:
    """`then` may rely on what `first` found sound."""

    def look(value: Any, where: str) -> Iterator[Fault]:
        sound = True
        for fault in first(value, where):
            sound = False
            yield fault
        if sound:
            yield from then(value, where)

    return look
