"""Requests to an installation while a part of it is down, by page code in this process or over HTTP with a token, with
the time each took."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from django.test import Client

#: The longest acceptable wait for a dead service.
PATIENCE = 3.0
#: A test machine is busier than a server. Without a limit, a request would wait thirty seconds.
BUSY = 8.0


@dataclass
class Answer:
    status: int
    text: str
    seconds: float
    headers: Any

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def in_time(self) -> bool:
        return self.seconds < PATIENCE + BUSY


def get_page(user: Any, path: str, data: Any = None, **more: Any) -> Answer:
    """The response of a page in this process; an error is a response, as for a browser."""
    client = Client(raise_request_exception=False)
    client.force_login(user)
    began = time.monotonic()
    answer = client.get(path, **more) if data is None else client.post(path, data, **more)
    seconds = time.monotonic() - began
    text = b"".join(answer).decode(errors="replace")
    return Answer(answer.status_code, text, seconds, answer.headers)


def over_http(url: str, body: Any = None, token: str = "", cookie: str = "") -> Answer:
    headers = {"Accept": "*/*"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if cookie:
        headers["Cookie"] = cookie
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    began = time.monotonic()
    try:
        with opener.open(request, timeout=30) as answer:
            found = answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        found = error.code, error.read().decode(), error.headers
    return Answer(found[0], found[1], time.monotonic() - began, found[2])


def measure(act: Any) -> tuple[Any, float]:
    began = time.monotonic()
    found = act()
    return found, time.monotonic() - began
