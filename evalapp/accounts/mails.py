"""Mails that leave after the answer has gone: how long a page takes must not tell whether there was one to send."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache


@lru_cache(maxsize=1)
def _line() -> ThreadPoolExecutor:
    """One after the other, in a thread of the process that was asked; a process that ends sends what is left first."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="mails")


def send_later(send: Callable[[], None]) -> None:
    """`send` logs what goes wrong itself: nobody waits for it."""
    _line().submit(send)


def wait_until_sent(seconds: float) -> None:
    """Until all that was handed over so far has left; TimeoutError after `seconds`."""
    _line().submit(lambda: None).result(seconds)
