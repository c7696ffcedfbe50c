"""Mappings of known formats, recognized by their columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .mapping import Mapping

if TYPE_CHECKING:
    from .tables import Table


@dataclass(frozen=True)
class Preset:
    """A known format: `matches` says whether a table has it."""

    name: str
    label: str
    matches: Callable[[Table], bool]
    mapping: Mapping


#: Known formats; the first that matches is used.
PRESETS: list[Preset] = []


def find_preset(table: Table) -> Preset | None:
    return next((preset for preset in PRESETS if preset.matches(table)), None)
