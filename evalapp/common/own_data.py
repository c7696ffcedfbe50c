"""The port through which rooms show people what is stored about them, and take back what they wrote. Light, because
every process imports it at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

_ROOMS: list[str] = []


@dataclass(frozen=True)
class Part:
    """One table of a person's data: `rows` are JSON-ready."""

    name: str
    words: str
    rows: list[dict[str, Any]] = field(default_factory=list)


def register_own_data(module: str) -> None:
    """`module` has `own_parts(*, user) -> list[Part]` and `withdraw_texts(*, user) -> dict[str, int]`."""
    if module not in _ROOMS:
        _ROOMS.append(module)


def parts_of(user: Any) -> list[Part]:
    return [part for room in _ROOMS for part in import_module(room).own_parts(user=user)]


def withdraw_from_rooms(user: Any) -> dict[str, int]:
    """What was emptied, by name."""
    counts: dict[str, int] = {}
    for room in _ROOMS:
        counts |= import_module(room).withdraw_texts(user=user)
    return counts
