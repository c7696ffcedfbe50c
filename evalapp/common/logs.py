"""Formats of log lines. Each line has the id of its request or run; our own lines contain no texts of users."""

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

#: Ids that are accepted from a proxy; others are replaced, so that clients cannot write into the log.
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{8,64}")


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object with at, level, logger, message, and optionally request, run, status, trace."""

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
    """Formats a record as text. Line breaks in a message are escaped, so that it cannot forge other lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        return super().formatMessage(record)


class HostFilter(logging.Filter):
    """Logs a request with an unknown host name as a warning without traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = record.exc_text = None
        return True


def _forget(**_: Any) -> None:
    """Clear the id after the request: Django logs refused requests after all middleware has ended."""
    request_id.set("")


request_finished.connect(_forget)


class RequestNumber:
    """Gives each request an id, or takes the proxy's. The response and all log lines have it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        number = given if _ACCEPTED.fullmatch(given) else secrets.token_hex(8)
        request_id.set(number)
        response = self.get_response(request)
        response.headers["X-Request-ID"] = number
        return response
