"""Names on the Hugging Face hub, and whether this process may contact it. Programs of users may; the product may not,
because addresses come from its users, except in a command of an operator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NAME = re.compile(r"\A[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z")
_is_forbidden = False
_allowed_here: ContextVar[bool] = ContextVar("allowed_here", default=False)


def forbid_access() -> None:
    """Forbid this process to contact the hub, except within `allow_access`."""
    global _is_forbidden
    _is_forbidden = True


@contextmanager
def allow_access() -> Iterator[None]:
    """Allow the hub within this block, in this thread."""
    token = _allowed_here.set(True)
    try:
        yield
    finally:
        _allowed_here.reset(token)


def may_access() -> bool:
    """Return whether the hub may be contacted here."""
    return not _is_forbidden or _allowed_here.get()


def is_hub_name(name: str) -> bool:
    """Return whether `name` has the form of a model on the hub, `organisation/model`.

    >>> is_hub_name("my-lab/fluency"), is_hub_name("bleu-star")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None
