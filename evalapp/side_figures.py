"""Side figures: optional figures of a table, a page or an export, which can be shown without them.

Compute one by `side_value("The noise ceiling", compute, default)`, or inside `with side_figure("...")`. The code that
returns the table opens `collect_failures()` around the whole computation and shows `failure_sentence` with the result:
a figure that fails is then logged with its traceback, and the rest is complete. Without a collector the error is
raised, so that programs that call the library see it.

`is_strict` raises in any case. The tests set it (`tests/conftest.py`); a test that injects a failure clears it."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

T = TypeVar("T")
D = TypeVar("D")

logger = logging.getLogger("evalapp.side_figures")
#: Raise even if failures are collected.
is_strict = False
#: Note on a figure that failed.
FAILED = gettext_noop("it could not be computed because of an internal error, which is in the server's log")

_failed: ContextVar[list[str] | None] = ContextVar("failed side figures", default=None)


@contextmanager
def collect_failures() -> Iterator[list[str]]:
    """Yield the list of the figures that fail inside, each once, in order."""
    failed: list[str] = []
    token = _failed.set(failed)
    try:
        yield failed
    finally:
        _failed.reset(token)


@contextmanager
def side_figure(name: str, expected: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Compute a figure that may fail without its table; `name` begins a sentence: "The noise ceiling". `expected`
    errors are raised, because they are results, not failures."""
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
    """Add figures that failed in a part that was computed earlier."""
    failed = _failed.get()
    if failed is not None:
        failed.extend(name for name in names if name not in failed)


def side_value(name: str, compute: Callable[[], T], otherwise: D) -> T | D:
    """Return a side figure, `otherwise` if it fails."""
    with side_figure(name):
        return compute()
    return otherwise


def side_note(compute: Callable[[], str]) -> str:
    """Return the note of a table, "" if it fails."""
    return side_value(_("The note of the table"), compute, "")


def failures_so_far() -> list[str]:
    """Return the failures in the enclosing collector; empty without one."""
    return list(_failed.get() or ())


def failure_sentence(failed: Sequence[str]) -> str:
    """Return a sentence on missing figures and where to find the reason; "" if none is missing."""
    if not failed:
        return ""
    names = [failed[0], *(f"{name[0].lower()}{name[1:]}" for name in failed[1:])]
    text = _(
        "%(figures)s could not be computed because of an internal error; everything else is complete. The reason is in "
        "the server's log."
    )
    listed = (
        names[0]
        if len(names) == 1
        else _("%(first)s and %(last)s") % {"first": ", ".join(names[:-1]), "last": names[-1]}
    )
    return text % {"figures": listed}
