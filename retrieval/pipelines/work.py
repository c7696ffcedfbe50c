"""The interface between pipelines and their caller: a background run, or a command without one."""

from collections.abc import Callable
from typing import Protocol


class Work(Protocol):
    """Progress and log of the work; `evalapp.common.runner.RunContext` implements it."""

    def progress(self, done: int, total: int | None = None, unit: str = "rows", phase: str = "") -> None:
        """Report the progress; raises if the work should stop."""

    def log(self, text: str) -> None:
        """Write a line to the log of the run."""


class CommandWork:
    """Work of a command without a run: log lines go to `say`, progress is ignored."""

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self._say = say

    def progress(self, done: int, total: int | None = None, unit: str = "rows", phase: str = "") -> None:
        pass

    def log(self, text: str) -> None:
        self._say(text)
