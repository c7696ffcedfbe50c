"""What the pipelines of this room need of whoever runs them: a background run, or a command without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Work(Protocol):
    """`evalapp.common.runner.RunContext` is one."""

    def progress(self, done: int, total: int | None = None, unit: str = "rows", phase: str = "") -> None:
        """Note how far it is; raises where the work is to stop."""

    def log(self, text: str) -> None:
        """A line for the people who watch."""


class Plain:
    """Work without a run: lines go to `say`, progress is not noted."""

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self._say = say

    def progress(self, done: int, total: int | None = None, unit: str = "rows", phase: str = "") -> None:
        pass

    def log(self, text: str) -> None:
        self._say(text)
