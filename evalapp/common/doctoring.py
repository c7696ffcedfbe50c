"""The port through which rooms put lines of their own into `manage.py doctor`. Light, because every process imports it
at its start."""

from __future__ import annotations

from importlib import import_module

from evalapp.ops.checks import Check

_CHECKS: list[str] = []


def register_checks(target: str) -> None:
    """`target` is `module:function() -> list[Check]`; it is called only while the database answers."""
    if target not in _CHECKS:
        _CHECKS.append(target)


def room_checks() -> list[Check]:
    found: list[Check] = []
    for target in _CHECKS:
        module, _, name = target.partition(":")
        found += getattr(import_module(module), name)()
    return found
