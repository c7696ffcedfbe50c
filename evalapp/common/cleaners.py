"""What rooms keep outside the database for a project, and who removes it when the project is deleted. Light, because
every process imports it at its start."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_CLEANERS: list[str] = []


def register_cleaner(target: str) -> None:
    """`target` is `module:function(*, project)`; it is called before the rows of the project go, maybe twice."""
    if target not in _CLEANERS:
        _CLEANERS.append(target)


def clean(project: Any) -> None:
    for target in _CLEANERS:
        module, _, name = target.partition(":")
        getattr(import_module(module), name)(project=project)
