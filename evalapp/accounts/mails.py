"""Send mails after the response, so that response times do not reveal whether an address has an account."""

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils.translation import get_language, override

from evalapp.common.display import choose_language

log = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def _executor() -> ThreadPoolExecutor:
    """A thread that sends one mail after the other. The process waits for it before it ends."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="mails")


def send_later(subject: str, body: str, context: dict[str, Any], sender: str | None, to: str) -> None:
    """Send a mail from the templates `subject` and `body`, in the language of the account `context["user"]` or else of
    this request. Errors are logged."""
    language = choose_language(context["user"], get_language() or settings.LANGUAGE_CODE)
    _executor().submit(partial(_send, subject, body, context, sender, to, language))


def _send(subject: str, body: str, context: dict[str, Any], sender: str | None, to: str, language: str) -> None:
    try:
        with override(language):  # a new thread has the language of the installation
            line = "".join(render_to_string(subject, context).splitlines())
            EmailMessage(line, render_to_string(body, context), sender, [to]).send()
    except Exception as error:  # noqa: BLE001 - otherwise the executor would drop the error
        # The message may contain the address, which must not be logged.
        code = getattr(error, "smtp_code", None) or getattr(error, "strerror", None) or "no code"
        log.error("A mail to account %s was not sent: %s (%s)", context["user"].pk, type(error).__name__, code)


def wait_until_sent(seconds: float) -> None:
    """Wait until all pending mails have been sent; raise TimeoutError after `seconds`."""
    _executor().submit(lambda: None).result(seconds)
