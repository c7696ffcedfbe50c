"""Side figures: what a table, a page or an export shows besides its rows, and can be shown without.

Code that computes one wraps it in `side_figure("The noise ceiling")` and sets a default before. The code that answers
with the table opens `collect_failures()` around the whole computation and shows `failure_sentence` with the result:
then a figure that fails is logged with its traceback for the administrator, and the rest is complete. Without a
collector nothing would say what is missing, so the error is raised: programs that call the library see it.

`is_strict` raises in any case. The tests set it (`tests/conftest.py`), so that no error is hidden there; a test that
injects a failure clears it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

logger = logging.getLogger("evalapp.side_figures")
#: Raise even where failures are collected.
is_strict = False
#: The note of a figure that failed.
FAILED = "it could not be computed because of an internal error, which is in the server's log"

_failed: ContextVar[list[str] | None] = ContextVar("failed side figures", default=None)


@contextmanager
def collect_failures() -> Iterator[list[str]]:
    """The names of the figures that fail inside, each once, in order."""
    failed: list[str] = []
    token = _failed.set(failed)
    try:
        yield failed
    finally:
        _failed.reset(token)


@contextmanager
def side_figure(name: str, expected: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Computes a figure that may fail without its table; `name` begins a sentence: "The noise ceiling". Errors that are
    `expected` are answers, not failures: they are raised."""
    try:
        yield
    except expected:
        raise
    except Exception:
        failed = _failed.get()
        if failed is None or is_strict:
            raise
        logger.exception("%s could not be computed", name)
        note_failures([name])


def note_failures(names: Iterable[str]) -> None:
    """Adds figures that failed in a part, computed before, of what is computed now."""
    failed = _failed.get()
    if failed is not None:
        failed.extend(name for name in names if name not in failed)


def side_note(compute: Callable[[], str]) -> str:
    """The note of a table, empty where it fails."""
    with side_figure("The note of the table"):
        return compute()
    return ""


def failures_so_far() -> list[str]:
    """What has failed in the collector around; empty without one."""
    return list(_failed.get() or ())


def failure_sentence(failed: Sequence[str]) -> str:
    """What is missing and where the reason is; empty where nothing is missing."""
    if not failed:
        return ""
    names = [failed[0], *(f"{name[0].lower()}{name[1:]}" for name in failed[1:])]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"{listed} could not be computed because of an internal error; all else is complete. The administrator finds "
        "the reason in the server's log."
    )
