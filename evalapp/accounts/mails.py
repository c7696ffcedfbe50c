"""Mails that leave after the answer has gone: how long a page takes must not tell whether there was one to send."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

from django.core.mail import EmailMessage
from django.template.loader import render_to_string

log = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def _line() -> ThreadPoolExecutor:
    """One after the other, in a thread of the process that was asked; a process that ends sends what is left first."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="mails")


def send_later(subject: str, body: str, context: dict[str, Any], sender: str | None, to: str) -> None:
    """`subject` and `body` name templates. That one was not sent is for the log: nobody waits for it."""
    _line().submit(partial(_send, subject, body, context, sender, to))


def _send(subject: str, body: str, context: dict[str, Any], sender: str | None, to: str) -> None:
    try:
        line = "".join(render_to_string(subject, context).splitlines())
        EmailMessage(line, render_to_string(body, context), sender, [to]).send()
    except Exception as error:  # noqa: BLE001 - the border of the thread, where an error would be lost
        # Its words may hold the address, which is not for the log.
        code = getattr(error, "smtp_code", None) or getattr(error, "strerror", None) or "no code"
        log.error("A mail to account %s was not sent: %s (%s)", context["user"].pk, type(error).__name__, code)


def wait_until_sent(seconds: float) -> None:
    """Until all that was handed over so far has left; TimeoutError after `seconds`."""
    _line().submit(lambda: None).result(seconds)
