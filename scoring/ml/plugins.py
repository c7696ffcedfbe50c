"""Evaluators of other packages, which declare them by an entry point in the group `evalapp.evaluators`.

Explained in docs/how-to/write-a-plugin.md. A plug-in that cannot be loaded is reported and left out; it never stops
the program. No torch here: the web process reads the catalogue, and so plug-ins must not import torch at the top.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from scoring.ml.catalogue import Entry

GROUP = "evalapp.evaluators"
#: A name is part of addresses, commands and signatures.
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plugin:
    """An entry point: its `name`, the `package` that declares it with its version, and its evaluators. `fault` says
    why they are not used, "" if they are."""

    name: str
    package: str
    entries: tuple[Entry, ...] = ()
    fault: str = ""


@cache
def load_plugins(taken: tuple[str, ...]) -> tuple[Plugin, ...]:
    """Import all plug-ins, in the order of their packages; `taken` are the names that their evaluators may not have.

    An entry point names a module with `ENTRIES`, or the sequence of `Entry` itself.
    """
    found = sorted(entry_points(group=GROUP), key=lambda point: (_find_package(point), point.name, point.value))
    names, result = set(taken), []
    for point in dict.fromkeys(found):
        plugin = _load(point, names)
        names.update(entry.name for entry in plugin.entries)
        if plugin.fault:
            _log.warning("The plug-in %s of %s is not used: %s", plugin.name, plugin.package, plugin.fault)
        result.append(plugin)
    return tuple(result)


def _load(point: EntryPoint, taken: Collection[str]) -> Plugin:
    package = _find_package(point)
    try:
        target = point.load()
        entries = tuple(getattr(target, "ENTRIES", target))
    # Foreign code may raise anything, SystemExit at its import included.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Plugin(point.name, package, fault=f"{point.value} cannot be loaded: {type(error).__name__}: {error}")
    fault = _find_fault(entries, taken)
    if fault:
        return Plugin(point.name, package, fault=fault)
    return Plugin(point.name, package, tuple(replace(entry, plugin=package) for entry in entries))


def _find_fault(entries: tuple[Any, ...], taken: Collection[str]) -> str:
    """Return why the entries cannot be part of the catalogue, "" if they can."""
    if not entries:
        return "it has no entries"
    names = []
    for entry in entries:
        if not isinstance(entry, Entry):
            return f"{entry!r} is not an Entry"
        if not _NAME.fullmatch(entry.name):
            return f"the name {entry.name!r} must consist of lower-case letters, digits and single hyphens"
        if entry.name in taken or entry.name in names:
            return f"the name {entry.name!r} is taken"
        names.append(entry.name)
    return ""


def _find_package(point: EntryPoint) -> str:
    """Return name and version of the package that declares the entry point, as in `my-metric 1.2`."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
