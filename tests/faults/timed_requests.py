"""Requests to an installation while a part of it is down, to views in this process or over HTTP, with their
duration."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from django.test import Client

#: The longest acceptable wait for an unavailable service.
MAX_WAIT_SECONDS = 3.0
#: Additional time because a test machine is busier than a server. Without time limits, a request would wait 30 seconds.
BUSY_MACHINE_SECONDS = 8.0


@dataclass
class Response:
    status: int
    text: str
    seconds: float
    headers: Any

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def in_time(self) -> bool:
        return self.seconds < MAX_WAIT_SECONDS + BUSY_MACHINE_SECONDS


def get_page(user: Any, path: str, data: Any = None, **more: Any) -> Response:
    """Return the response of a page in this process; an exception becomes an error page, as for a browser."""
    client = Client(raise_request_exception=False)
    client.force_login(user)
    started = time.monotonic()
    response = client.get(path, **more) if data is None else client.post(path, data, **more)
    seconds = time.monotonic() - started
    text = b"".join(response).decode(errors="replace")
    return Response(response.status_code, text, seconds, response.headers)


def request_over_http(url: str, body: Any = None, token: str = "", cookie: str = "") -> Response:
    headers = {"Accept": "*/*"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if cookie:
        headers["Cookie"] = cookie
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    started = time.monotonic()
    try:
        with opener.open(request, timeout=30) as response:
            status, text, response_headers = response.status, response.read().decode(), response.headers
    except urllib.error.HTTPError as error:
        status, text, response_headers = error.code, error.read().decode(), error.headers
    return Response(status, text, time.monotonic() - started, response_headers)


def time_call(function: Any) -> tuple[Any, float]:
    """Return the result of the function and its duration in seconds."""
    started = time.monotonic()
    result = function()
    return result, time.monotonic() - started
