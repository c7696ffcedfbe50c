"""The real application behind the client, in this process: requests go through WSGI, and queued runs are executed
before an answer about them is given."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from evalapp.client import Client, Retry

WATCHED = ("/runs/", "/uploads/", "/exports/")


class Installation(httpx.BaseTransport):
    """If `works` is False, no worker takes runs. `seen` lists method and path of every request. `loses`: number of
    POSTs whose answer is lost after the work is done."""

    def __init__(self) -> None:
        from evalapp.wsgi import application

        self.wsgi = httpx.WSGITransport(app=application)
        self.works = True
        self.loses = 0
        self.seen: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(f"{request.method} {request.url.path}")
        if self.works and request.method == "GET" and any(part in request.url.path for part in WATCHED):
            self.work()
        answer = self.wsgi.handle_request(request)
        if self.loses and request.method == "POST":
            self.loses -= 1
            self.work()
            raise httpx.ReadTimeout("lost", request=request)
        return answer

    def work(self) -> None:
        from evalapp.common.models import Run
        from evalapp.common.runner import execute_run

        while (number := Run.objects.filter(state="queued").values_list("pk", flat=True).first()) is not None:
            execute_run(number)


@pytest.fixture
def installation(cast) -> Installation:
    return Installation()


@pytest.fixture
def connect(installation) -> Callable[..., Client]:
    """A client for one of the cast, with a token for these scopes."""

    def make(user, *scopes: str, **options) -> Client:
        from evalapp.accounts.services import create_token

        secret = create_token(user=user, name="client", scopes=list(scopes) or ["read", "write"], days=1)[1]
        options.setdefault("retries", Retry(times=2, first=0.001))
        return Client("http://testserver", secret, transport=installation, **options)

    return make


@pytest.fixture
def rita(connect, cast) -> Client:
    return connect(cast.researcher)
