"""Hooks by which apps take part in backups: which files their rows need, and what to rebuild after a restore. Imports
little, because every process imports it at start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_FILES: list[str] = []
_RESTORED: list[str] = []


@dataclass(frozen=True)
class BackupFile:
    """A file or folder below one of the roots in `files.ROOTS`. `needed`: its row is useless without it. `follow`:
    replace symbolic links in it by the files they point to."""

    root: str
    path: str
    needed: bool = False
    follow: bool = False


def register_files(target: str) -> None:
    """Register `module:function(apps) -> Iterator[BackupFile]`; it reads rows by `apps.get_model` and never writes."""
    if target not in _FILES:
        _FILES.append(target)


def register_restored(target: str) -> None:
    """Register `module:function(say) -> list[str]`, called after a restore. It rebuilds what backups do not contain and
    returns a line for each task that is left for a person."""
    if target not in _RESTORED:
        _RESTORED.append(target)


def list_files(apps: Any) -> Iterator[BackupFile]:
    """Yield the files of all apps."""
    for target in _FILES:
        yield from _load(target)(apps)


def rebuild(say: Callable[[str], None]) -> list[str]:
    """Call the hooks for restored installations; return what is left for a person to do."""
    return [line for target in _RESTORED for line in _load(target)(say)]


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
