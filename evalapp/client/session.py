"""HTTP requests of the client: token, time-outs, retries with back-off, problem documents as errors, cursor pages, and
downloads."""

import random
import re
import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from evalapp.client.addresses import PREFIX, parse_base_url
from evalapp.client.errors import (
    ApiError,
    ConnectionFailed,
    InvalidArgument,
    MissingFile,
    TimedOut,
    UnexpectedAnswer,
    expecting,
    find_error_class,
)
from evalapp.client.json_lines import explain_unsendable
from evalapp.client.wire import Meter, MeteredBody, apply_deadlines, set_deadline

#: Statuses after which an idempotent request is repeated.
RETRY_STATUSES = frozenset({429, 502, 503, 504})
#: The server answers a request with the key of an earlier one with the earlier response.
KEY_HEADER = "Idempotency-Key"
#: Minimum time-out of a request, even if less time is left.
MIN_SECONDS = 1.0
PAGE_SIZE = 500
#: Format of idempotency keys.
KEY = re.compile(r"[!-~]{1,255}")

Parameters = Mapping[str, Any]
#: Returns arguments of `httpx.Client.build_request` for an attempt; files that it opens are closed by the stack.
Body = Callable[[ExitStack], dict[str, Any]]


@dataclass(frozen=True)
class Retry:
    """How often and with which pauses a request is repeated.

    The n-th pause is `first * 2^(n-1)` seconds, at most `longest`, times a random factor between 0.5 and 1. A
    `Retry-After` of the server is respected up to `longest_asked` seconds; beyond that the error is raised."""

    times: int = 4
    first: float = 0.5
    longest: float = 20.0
    longest_asked: float = 60.0

    def pause(self, attempt: int) -> float:
        """Return the seconds to wait after attempt number `attempt`, counted from 1."""
        return min(self.longest, self.first * 2.0 ** (attempt - 1)) * _jitter.uniform(0.5, 1.0)


@dataclass(frozen=True)
class _Call:
    """A request for all its attempts. `sink` reads the body of a successful response. `until` is a moment of
    `time.monotonic` after which no attempt is made. `is_transfer`: the time-out limits each step of the transfer, not
    the whole response."""

    method: str
    url: str
    params: Parameters | None = None
    json: Any = None
    body: Body | None = None
    meter: Meter | None = None
    timeout: float | None = None
    sink: Callable[[httpx.Response], None] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    until: float | None = None
    is_transfer: bool = False

    @property
    def left(self) -> float | None:
        """Remaining seconds; None: no limit."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())


#: Own generator, so that the random numbers of the program do not change.
_jitter = random.Random()


def new_key() -> str:
    """Return an idempotency key for a call and its repetitions."""
    return str(uuid.uuid4())


def read_retry_after(headers: httpx.Headers) -> float | None:
    """Return `Retry-After` of `headers` in seconds; None if it is missing or invalid."""
    text = headers.get("Retry-After", "").strip()
    if text.isdigit():
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())


def _sleep(pause: float, call: _Call) -> bool:
    """Wait before the next attempt, but not longer than the call may take. Returns whether another attempt is
    possible."""
    left = call.left
    time.sleep(pause if left is None else min(pause, left))
    return left is None or pause < left


class Session:
    """Sends requests to an installation. Thread-safe. Arguments: see `Client`."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float | httpx.Timeout,
        retries: int | Retry,
        transport: httpx.BaseTransport | None,
        verify: bool | str,
    ) -> None:
        if not token.isprintable() or not token.isascii() or " " in token:
            raise InvalidArgument("the token contains invalid characters; copy it once more")
        self.base = parse_base_url(url)
        self.retry = Retry(times=retries) if isinstance(retries, int) else retries
        #: Limit of a whole response, in seconds; None: only its steps are limited.
        self.seconds = None if isinstance(timeout, httpx.Timeout) else timeout
        if not isinstance(timeout, httpx.Timeout):
            timeout = httpx.Timeout(timeout, connect=min(timeout, 10.0))
        headers = {"Accept": "application/json", "User-Agent": "evalapp-client"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if isinstance(verify, str):
            import ssl

            try:
                context: ssl.SSLContext | bool = ssl.create_default_context(cafile=verify)
            except FileNotFoundError as error:
                raise MissingFile(f"{verify} does not exist; `verify` must be a file of certificates") from error
        else:
            context = verify
        self.http = httpx.Client(headers=headers, timeout=timeout, transport=transport, verify=context)
        apply_deadlines(self.http)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    # ---- requests -------------------------------------------------------------------------------------------

    def get(self, path: str, params: Parameters | None = None, **rest: Any) -> Any:
        """Send a GET request: `call` with `path`, `params` and other arguments."""
        return self.call("GET", path, params=params, **rest)

    def post(self, path: str, json: Any = None, **rest: Any) -> Any:
        """Send a POST request: `call` with `path`, `json` and other arguments."""
        return self.call("POST", path, json=json, **rest)

    def call(
        self,
        method: str,
        path: str,
        *,
        params: Parameters | None = None,
        json: Any = None,
        body: Body | None = None,
        meter: Meter | None = None,
        idempotent: bool | None = None,
        key: str | None = None,
        timeout: float | None = None,
        until: float | None = None,
    ) -> Any:
        """Send a request; return the JSON of the response, or None if it is empty.

        `method` and `path` (below /api/v1/) with the query `params`; the body is `json`, or what `body` opens, whose
        transfer is reported to `meter`. `timeout` is in seconds (default: the session's). The request is repeated after
        a failed connection and after 429, 502, 503 and 504 if it is `idempotent` (default: GET, PUT, DELETE, and
        requests with an idempotency `key`). Any request is repeated if the server has not processed it: without a
        connection, or after 429. After `until`, a moment of `time.monotonic`, the last error is raised.
        """
        if key is not None and not KEY.fullmatch(key):
            raise InvalidArgument(
                f"{method} {path} was not sent: an idempotency key has 1 to 255 visible ASCII characters, not {key!r}"
            )
        headers = {} if key is None else {KEY_HEADER: key}
        results: list[Any] = []

        def sink(response: httpx.Response) -> None:
            response.read()
            results[:] = [_parse_json(response)]

        url, is_upload = f"{self.base}{PREFIX}{path}", body is not None
        call = _Call(method, url, params, json, body, meter, timeout, sink, headers, until, is_upload)
        if idempotent is None:
            idempotent = key is not None or method in ("GET", "PUT", "DELETE")
        self._send(call, idempotent)
        return results[0]

    def _send(self, call: _Call, is_idempotent: bool) -> httpx.Response:
        """Send a request and its repetitions."""
        attempt = 0
        while True:
            attempt += 1
            try:
                response = self._attempt(call)
            except httpx.RequestError as error:
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                may_repeat = attempt <= self.retry.times and (is_idempotent or unsent)
                if not may_repeat or not _sleep(self.retry.pause(attempt), call):
                    raise self._make_connection_error(error, call.url, attempt) from error
                continue
            if response.is_success:
                return response
            pause = self._find_pause(response, attempt, is_idempotent)
            if pause is None or not _sleep(pause, call):
                raise self._make_error(response)

    def _attempt(self, call: _Call) -> httpx.Response:
        with ExitStack() as stack:
            request = self._build_request(call, call.body(stack) if call.body is not None else {})
            if call.meter is not None and isinstance(request.stream, httpx.SyncByteStream):
                length = request.headers.get("Content-Length", "")
                request.stream = MeteredBody(request.stream, int(length) if length.isdigit() else None, call.meter)
            stack.enter_context(set_deadline(self._find_deadline(call)))
            response = self.http.send(request, stream=True)
            stack.callback(response.close)
            if call.sink is not None and response.is_success:
                call.sink(response)
            else:
                response.read()
            return response

    def _build_request(self, call: _Call, body: dict[str, Any]) -> httpx.Request:
        """Build a request. Raises `InvalidArgument` for values that cannot be sent."""
        params = {name: value for name, value in (call.params or {}).items() if value is not None}
        try:
            return self.http.build_request(
                call.method,
                call.url,
                params=params,
                headers={**body.pop("headers", {}), **call.headers},
                json=call.json,
                timeout=self._find_timeout(call),
                **body,
            )
        except (TypeError, ValueError, httpx.InvalidURL) as error:
            reason = explain_unsendable({**params, **call.json} if isinstance(call.json, dict) else params, error)
            raise InvalidArgument(f"{call.method} {call.url} was not sent: {reason}") from error

    def _find_timeout(self, call: _Call) -> httpx.Timeout:
        timeout = self.http.timeout if call.timeout is None else httpx.Timeout(call.timeout)
        if call.left is None:
            return timeout
        limit = max(MIN_SECONDS, call.left)
        return httpx.Timeout(**{name: min(limit, value or limit) for name, value in timeout.as_dict().items()})

    def _find_deadline(self, call: _Call) -> float | None:
        """Return the moment at which the whole response must have arrived; None: no deadline."""
        if call.is_transfer:
            return None
        now, seconds = time.monotonic(), self.seconds if call.timeout is None else call.timeout
        moments = [] if seconds is None else [now + seconds]
        if call.until is not None:
            moments.append(max(call.until, now + MIN_SECONDS))
        return min(moments, default=None)

    def _find_pause(self, response: httpx.Response, attempt: int, is_idempotent: bool) -> float | None:
        """Return the seconds until the request is repeated; None if the error is final."""
        status = response.status_code
        retry_after = read_retry_after(response.headers)
        # The first request with this key is in progress; its response is returned to the repetition.
        is_in_progress = status == 409 and retry_after is not None and KEY_HEADER in response.request.headers
        may_repeat = status == 429 or is_in_progress or (is_idempotent and status in RETRY_STATUSES)
        if attempt > self.retry.times or not may_repeat:
            return None
        if retry_after is None:
            return self.retry.pause(attempt)
        return retry_after * _jitter.uniform(1.0, 1.1) if retry_after <= self.retry.longest_asked else None

    def _make_connection_error(self, error: httpx.RequestError, url: str, attempts: int) -> ConnectionFailed:
        kind = TimedOut if isinstance(error, httpx.TimeoutException) else ConnectionFailed
        reason = "no answer within the time-out" if kind is TimedOut else str(error) or type(error).__name__
        return kind(reason, url=url, attempts=attempts)

    def _make_error(self, response: httpx.Response) -> Exception:
        request = response.request
        if response.is_redirect:
            target = response.headers.get("Location", "")
            return UnexpectedAnswer(f"{request.url} redirects to {target}; pass that address to the client")
        try:
            problem = response.json()
        except ValueError:
            problem = None
        if not isinstance(problem, dict):
            problem = {"title": response.reason_phrase, "detail": f"no problem document from {request.url.host}"}
        kind: type[ApiError] = find_error_class(response.status_code)
        return kind(
            response.status_code,
            problem,
            method=request.method,
            url=str(request.url),
            retry_after=read_retry_after(response.headers),
        )

    def get_text(self, path: str, params: Parameters | None = None) -> str:
        """Return the text file at `path` with the query `params`."""
        results: list[str] = []

        def sink(response: httpx.Response) -> None:
            response.read()
            results[:] = [response.text]

        headers = {"Accept": "*/*"}
        self._send(_Call("GET", f"{self.base}{PREFIX}{path}", params, sink=sink, headers=headers), is_idempotent=True)
        return results[0]

    # ---- pages and files --------------------------------------------------------------------------------------

    def results(self, path: str) -> list[dict[str, Any]]:
        """Return the rows of the list at `path`, which has a single page."""
        return _read_rows(path, self.get(path))

    def pages(self, path: str, params: Parameters | None = None, size: int = PAGE_SIZE) -> Iterator[list[Any]]:
        """Yield the pages of the list at `path` with the query `params`, each with `size` rows. Only the cursor of the
        link to the next page is used, so that the token is never sent to another address."""
        query = {**(params or {}), "limit": size}
        while True:
            page = self.get(path, query)
            yield _read_rows(path, page)
            with expecting("the address of the next page"):
                cursors = parse_qs(urlsplit(page.get("next") or "").query).get("cursor")
            if not cursors:
                return
            if query.get("cursor") == cursors[0]:
                raise UnexpectedAnswer(f"{path} links to the same page again")
            query["cursor"] = cursors[0]

    def download(self, path: str, target: Path, *, size: int | None = None, meter: Meter | None = None) -> None:
        """Write the file at `path` to `target`, which appears when complete; a broken transfer is repeated. `size`, in
        bytes, is checked if given; `meter` is called with the bytes written. If two processes write the same target,
        the last one wins."""
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")

        def sink(response: httpx.Response) -> None:
            done = 0
            with part.open("wb") as file:
                for chunk in response.iter_bytes(1 << 16):
                    file.write(chunk)
                    done += len(chunk)
                    if meter is not None:
                        meter(done, size)
            if size is not None and done != size:
                raise httpx.RemoteProtocolError(f"{done} of {size} bytes arrived")

        try:
            headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
            url = f"{self.base}{PREFIX}{path}"
            self._send(_Call("GET", url, sink=sink, headers=headers, is_transfer=True), is_idempotent=True)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _parse_json(response: httpx.Response) -> Any:
    """Return the JSON of a response; None if it is empty. Raises RemoteProtocolError, after which the request is
    repeated, for truncated JSON: without a Content-Length nothing else reveals it."""
    if response.status_code == 204 or not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        if response.content.lstrip()[:1] in (b"{", b"["):
            raise httpx.RemoteProtocolError("the response was cut short in the middle of its JSON") from error
        kind = response.headers.get("Content-Type", "no type")
        raise UnexpectedAnswer(
            f"{response.request.url} responded {response.status_code} with {kind} instead of JSON; is this the address "
            "of an installation, without a sign-in page of a proxy in front of it?"
        ) from error


def _read_rows(path: str, page: Any) -> list[dict[str, Any]]:
    rows = page.get("results") if isinstance(page, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnexpectedAnswer(f"{path} did not respond with a list of results")
    return rows
