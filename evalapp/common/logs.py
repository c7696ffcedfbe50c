"""How lines of the log look, and what ties them together: the number of the request and of the run they came from. No
line of ours holds a text that somebody typed."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.core.signals import request_finished
from django.http import HttpRequest, HttpResponse

request_id: ContextVar[str] = ContextVar("request_id", default="")
run_id: ContextVar[str] = ContextVar("run_id", default="")

#: A number that a proxy may give; anything else is replaced, so that nobody writes into the log.
_GIVEN = re.compile(r"[A-Za-z0-9._-]{8,64}")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: at, level, logger, message, and request, run, trace where there are any."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if number := request_id.get():
            line["request"] = number
        if number := run_id.get():
            line["run"] = int(number)
        status = getattr(record, "status_code", None)
        if isinstance(status, int):
            line["status"] = status
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class PlainFormatter(logging.Formatter):
    """For people. Line ends inside a message are shown, so that no message begins a line of its own; a trace keeps its
    lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        return super().formatMessage(record)


class HostFilter(logging.Filter):
    """A request under a foreign host name is no fault of the program: one warning line, without a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = record.exc_text = None
        return True


def _forget(**_: Any) -> None:
    """Django speaks of a refused request after every middleware has ended; what comes later is of no request."""
    request_id.set("")


request_finished.connect(_forget)


class RequestNumber:
    """Gives each request a number, or takes that of the proxy; it is in the answer and in every line of the log."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        number = given if _GIVEN.fullmatch(given) else secrets.token_hex(8)
        request_id.set(number)
        response = self.get_response(request)
        response.headers["X-Request-ID"] = number
        return response
