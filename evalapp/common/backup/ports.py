"""The ports through which rooms take part in backups: which files belong to their rows, and what is to be made again
after a restore. Light, because every process imports it at its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_FILES: list[str] = []
_RESTORED: list[str] = []


@dataclass(frozen=True)
class Kept:
    """A file or folder below one of the roots of `files.ROOTS`. `needed`: a row is of no use without it. `follow`:
    links in it stand for the files they lead to."""

    root: str
    path: str
    needed: bool = False
    follow: bool = False


def register_files(target: str) -> None:
    """`target` is `module:function(apps) -> Iterator[Kept]`; it reads rows by `apps.get_model` and writes nothing."""
    if target not in _FILES:
        _FILES.append(target)


def register_restored(target: str) -> None:
    """`target` is `module:function(say) -> list[str]`: makes again what no backup holds, and gives a line for each
    thing that somebody has to do by hand."""
    if target not in _RESTORED:
        _RESTORED.append(target)


def kept_files(apps: Any) -> Iterator[Kept]:
    for target in _FILES:
        yield from _load(target)(apps)


def make_again(say: Callable[[str], None]) -> list[str]:
    return [line for target in _RESTORED for line in _load(target)(say)]


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
