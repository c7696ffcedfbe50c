"""HTTP as the client speaks it: the token, time-outs, retries with back-off, problem documents as errors, cursor
pages, downloads to a file. What the addresses mean is in the other modules."""

from __future__ import annotations

import json as json_module
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
from urllib.parse import parse_qs, quote, urlsplit

import httpx

from evalapp.client.errors import (
    ApiError,
    ConnectionFailed,
    InvalidArgument,
    MissingFile,
    TimedOut,
    UnexpectedAnswer,
    error_class,
    expecting,
)
from evalapp.client.wire import answered_until, heed_moments

PREFIX = "/api/v1/"
#: Statuses after which an idempotent request is sent again.
AGAIN = frozenset({429, 502, 503, 504})
#: Under it the server answers a repeated request as the first one, without doing anything again.
KEY_HEADER = "Idempotency-Key"
#: A request is given at least so many seconds, however little is left.
LEAST_SECONDS = 1.0
PAGE_SIZE = 500
#: No row of a database has a greater number.
MOST_ROWS = 2**63 - 1
#: What an idempotency key may be made of, and how long it may be.
KEY = re.compile(r"[!-~]{1,255}")

#: Of a text that no file and no request can hold.
HALF = (
    "holds half a surrogate pair, which UTF-8 cannot write. Put another character in its place: "
    "text.encode('utf-8', 'replace').decode()"
)

Parameters = Mapping[str, Any]
#: (bytes done, bytes in all or None)
Meter = Callable[[int, int | None], None]
#: Makes the arguments of `httpx.Client.build_request` anew for each attempt; what it opens it hands to the stack.
Body = Callable[[ExitStack], dict[str, Any]]


@dataclass(frozen=True)
class Retry:
    """How often and how patiently a request is sent again.

    The n-th pause is a random part, from half to all, of `first * 2^(n-1)` seconds, at most `longest`; a server that
    says `Retry-After` is obeyed if that is at most `longest_asked` seconds, else its refusal stands at once."""

    times: int = 4
    first: float = 0.5
    longest: float = 20.0
    longest_asked: float = 60.0

    def pause(self, attempt: int) -> float:
        """Seconds before attempt number `attempt` + 1, from 1."""
        whole = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return whole * _jitter.uniform(0.5, 1.0)


class _Metered(httpx.SyncByteStream):
    """A request body that tells how much of it has been taken."""

    def __init__(self, stream: httpx.SyncByteStream, total: int | None, meter: Meter) -> None:
        self._stream, self._total, self._meter = stream, total, meter

    def __iter__(self) -> Iterator[bytes]:
        done = 0
        for chunk in self._stream:
            yield chunk
            done += len(chunk)
            self._meter(done, self._total)

    def close(self) -> None:
        self._stream.close()


@dataclass(frozen=True)
class _Call:
    """A request as often as it is sent; `sink` takes the body of a good answer as it comes in. `until`: a moment of
    `time.monotonic` after which nothing is sent any more. `as_long_as_it_goes_on`: the time-out holds for each step of
    the transfer, not for the answer as a whole."""

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
    as_long_as_it_goes_on: bool = False

    @property
    def left(self) -> float | None:
        """Seconds; None: as many as it takes."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())


#: The program's own random numbers are not ours to draw from.
_jitter = random.Random()


def new_key() -> str:
    """A name for one call, which all its repetitions carry."""
    return str(uuid.uuid4())


def segment(text: object) -> str:
    """A part of an address, with everything escaped that could leave it. Raises InvalidArgument for what is no name:
    a path would be shortened by `.` and `..`."""
    if str(text) in ("", ".", ".."):
        raise InvalidArgument(f"{str(text)!r} is the name of nothing")
    try:
        return quote(str(text), safe="")
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"the name {HALF}") from error


def whole(number: object) -> int:
    """The number of a run, an upload or a campaign."""
    try:
        found = int(number)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"{number!r} is no number of a row; give the `id` that an answer has") from error
    if not 0 <= found <= MOST_ROWS or (isinstance(number, float) and number != found):
        raise InvalidArgument("this is no number of a row; give the `id` that an answer has")
    return found


def plain_name(name: str, deepest: int = 1) -> str:
    """`name` if it stays below a folder, at most `deepest` levels down. Raises UnexpectedAnswer."""
    parts = name.split("/")
    if len(parts) > deepest or not all(part and part == Path(part).name and part[0] != "." for part in parts):
        raise UnexpectedAnswer(f"the server names a file {name!r}, which is no plain file name")
    return name


def base_of(url: str) -> str:
    """`http://host:8000` from that or from an address of its API. Raises InvalidArgument for any other."""
    try:
        parts = urlsplit(url.strip())
    except ValueError as error:
        raise InvalidArgument(f"{url!r} is no address: {error}; write it as http://127.0.0.1:8000") from error
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidArgument(f"{url!r} is not the address of an installation; write it as http://127.0.0.1:8000")
    path = parts.path.partition(PREFIX.rstrip("/"))[0].rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def seconds_asked(headers: httpx.Headers) -> float | None:
    """`Retry-After` in seconds, from a number or a date."""
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
    """Wait before the next attempt. Where its time is over by then, wait no longer than that, and say False."""
    left = call.left
    time.sleep(pause if left is None else min(pause, left))
    return left is None or pause < left


class Session:
    """One installation as one person sees it. Safe to share among threads."""

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
            raise InvalidArgument("the token holds characters that no token has; copy it once more")
        self.base = base_of(url)
        self.retry = Retry(times=retries) if isinstance(retries, int) else retries
        #: What a whole answer may take; None: only every step of it is limited.
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
                raise MissingFile(f"{verify} is not there; `verify` names a file of certificates") from error
        else:
            context = verify
        self.http = httpx.Client(headers=headers, timeout=timeout, transport=transport, verify=context)
        heed_moments(self.http)

    def close(self) -> None:
        self.http.close()

    # ---- requests -------------------------------------------------------------------------------------------

    def get(self, path: str, params: Parameters | None = None, **rest: Any) -> Any:
        return self.call("GET", path, params=params, **rest)

    def post(self, path: str, json: Any = None, **rest: Any) -> Any:
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
        """The JSON of the answer, None for an empty one. `path` stands under /api/v1/.

        Sent again after a failed connection and after 429, 502, 503 and 504, if `idempotent` (default: GET, PUT and
        DELETE are, and what has a `key`, by which the server knows a repetition). Any request is sent again when it
        cannot have arrived: the connection was not made, or the answer is 429, by which the server says that it did
        nothing. After `until`, a moment of `time.monotonic`, nothing is sent, and what went wrong last is raised.
        """
        if key is not None and not KEY.fullmatch(key):
            raise InvalidArgument(
                f"{method} {path} was not sent: an idempotency key has 1 to 255 visible ASCII characters, not {key!r}"
            )
        headers = {} if key is None else {KEY_HEADER: key}
        found: list[Any] = []

        def sink(response: httpx.Response) -> None:
            response.read()
            found[:] = [_json(response)]

        url, is_upload = f"{self.base}{PREFIX}{path}", body is not None
        call = _Call(method, url, params, json, body, meter, timeout, sink, headers, until, is_upload)
        if idempotent is None:
            idempotent = key is not None or method in ("GET", "PUT", "DELETE")
        self._send(call, idempotent)
        return found[0]

    def _send(self, call: _Call, again: bool) -> httpx.Response:
        """One request with its repetitions."""
        attempt = 0
        while True:
            attempt += 1
            try:
                response = self._attempt(call)
            except httpx.RequestError as error:
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                may_try = attempt <= self.retry.times and (again or unsent)
                if not may_try or not _sleep(self.retry.pause(attempt), call):
                    raise self._broken(error, call.url, attempt) from error
                continue
            if response.is_success:
                return response
            pause = self._pause_after(response, attempt, again)
            if pause is None or not _sleep(pause, call):
                raise self._refused(response)

    def _attempt(self, call: _Call) -> httpx.Response:
        with ExitStack() as stack:
            given = call.body(stack) if call.body is not None else {}
            request = self._build(call, given)
            if call.meter is not None and isinstance(request.stream, httpx.SyncByteStream):
                length = request.headers.get("Content-Length", "")
                request.stream = _Metered(request.stream, int(length) if length.isdigit() else None, call.meter)
            stack.enter_context(answered_until(self._end_of(call)))
            response = self.http.send(request, stream=True)
            stack.callback(response.close)
            if call.sink is not None and response.is_success:
                call.sink(response)
            else:
                response.read()
            return response

    def _build(self, call: _Call, given: dict[str, Any]) -> httpx.Request:
        """Raises InvalidArgument, and nothing has been sent, for what no request can carry."""
        params = {name: value for name, value in (call.params or {}).items() if value is not None}
        try:
            return self.http.build_request(
                call.method,
                call.url,
                params=params,
                headers={**given.pop("headers", {}), **call.headers},
                json=call.json,
                timeout=self._timeout(call),
                **given,
            )
        except (TypeError, ValueError, httpx.InvalidURL) as error:
            what = unsendable({**params, **call.json} if isinstance(call.json, dict) else params, error)
            raise InvalidArgument(f"{call.method} {call.url} was not sent: {what}") from error

    def _timeout(self, call: _Call) -> httpx.Timeout:
        usual = self.http.timeout if call.timeout is None else httpx.Timeout(call.timeout)
        if call.left is None:
            return usual
        most = max(LEAST_SECONDS, call.left)
        return httpx.Timeout(**{name: min(most, value or most) for name, value in usual.as_dict().items()})

    def _end_of(self, call: _Call) -> float | None:
        """The moment by which the whole of the answer must be there."""
        if call.as_long_as_it_goes_on:
            return None
        now, seconds = time.monotonic(), self.seconds if call.timeout is None else call.timeout
        moments = [] if seconds is None else [now + seconds]
        if call.until is not None:
            moments.append(max(call.until, now + LEAST_SECONDS))
        return min(moments, default=None)

    def _pause_after(self, response: httpx.Response, attempt: int, again: bool) -> float | None:
        """Seconds until the request is sent again; None when the answer stands."""
        status = response.status_code
        asked = seconds_asked(response.headers)
        # The first request under this key is still being worked on; its answer will be ours.
        is_under_way = status == 409 and asked is not None and KEY_HEADER in response.request.headers
        is_worth_it = status == 429 or is_under_way or (again and status in AGAIN)
        if attempt > self.retry.times or not is_worth_it:
            return None
        if asked is None:
            return self.retry.pause(attempt)
        return asked * _jitter.uniform(1.0, 1.1) if asked <= self.retry.longest_asked else None

    def _broken(self, error: httpx.RequestError, url: str, attempts: int) -> ConnectionFailed:
        kind = TimedOut if isinstance(error, httpx.TimeoutException) else ConnectionFailed
        what = "no answer within the time-out" if kind is TimedOut else str(error) or type(error).__name__
        return kind(what, url=url, attempts=attempts)

    def _refused(self, response: httpx.Response) -> Exception:
        request = response.request
        if response.is_redirect:
            target = response.headers.get("Location", "")
            return UnexpectedAnswer(f"{request.url} points to {target}; give the client that address")
        try:
            problem = response.json()
        except ValueError:
            problem = None
        if not isinstance(problem, dict):
            problem = {"title": response.reason_phrase, "detail": f"no problem document from {request.url.host}"}
        found: type[ApiError] = error_class(response.status_code)
        return found(
            response.status_code,
            problem,
            method=request.method,
            url=str(request.url),
            retry_after=seconds_asked(response.headers),
        )

    # ---- pages and files --------------------------------------------------------------------------------------

    def results(self, path: str) -> list[dict[str, Any]]:
        """The rows of a list that comes as one page."""
        return _rows(path, self.get(path))

    def pages(self, path: str, params: Parameters | None = None, size: int = PAGE_SIZE) -> Iterator[list[Any]]:
        """The pages of a list, one request each, when they are asked for. Of the link to the next page only the
        cursor is used: the token goes to no other address, whatever an answer says."""
        query = {**(params or {}), "limit": size}
        while True:
            page = self.get(path, query)
            yield _rows(path, page)
            with expecting("the address of the next page"):
                cursors = parse_qs(urlsplit(page.get("next") or "").query).get("cursor")
            if not cursors:
                return
            if query.get("cursor") == cursors[0]:
                raise UnexpectedAnswer(f"{path} leads to the same page again and again")
            query["cursor"] = cursors[0]

    def download(self, path: str, target: Path, *, size: int | None = None, meter: Meter | None = None) -> None:
        """Write a file of the server to `target`, which appears only when it is whole; a broken transfer begins
        anew. Two that write the same file do not meet: the last one stands. `size` is checked if given."""
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
            self._send(_Call("GET", url, sink=sink, headers=headers, as_long_as_it_goes_on=True), again=True)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _json(response: httpx.Response) -> Any:
    """What a good answer holds; None for an empty one. Raises RemoteProtocolError, after which the request may be sent
    again, for JSON that cannot be read to its end: where the length is not told, that is how a cut shows."""
    if response.status_code == 204 or not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        if response.content.lstrip()[:1] in (b"{", b"["):
            raise httpx.RemoteProtocolError("the answer was cut short in the middle of its JSON") from error
        kind = response.headers.get("Content-Type", "no type")
        raise UnexpectedAnswer(
            f"{response.request.url} answers {response.status_code} with {kind} where JSON was due; is this the "
            "address of an installation, without a sign-in page of a proxy before it?"
        ) from error


def _rows(path: str, page: Any) -> list[dict[str, Any]]:
    rows = page.get("results") if isinstance(page, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnexpectedAnswer(f"{path} did not answer with a list of results")
    return rows


def unsendable(value: Any, error: Exception) -> str:
    """Why this cannot be written as JSON, with the place of a text that is the reason."""
    place = _half_pair(value)
    if place is not None:
        return f"{place.lstrip('.') or 'it'} {HALF}"
    if "float values are not JSON" in str(error):
        return f"{error}. Leave such a number out, or write None where it may be absent"
    return str(error)


def _half_pair(value: Any, place: str = "") -> str | None:
    """Where the first text is that holds half a surrogate pair."""
    if isinstance(value, str):
        return place if any("\ud800" <= letter <= "\udfff" for letter in value) else None
    parts: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        for name, part in value.items():
            if _half_pair(str(name)) is not None:
                return f"{place} (a name in it)"
            parts.append((f"{place}.{name}", part))
    elif isinstance(value, list | tuple):
        parts = [(f"{place}[{number}]", part) for number, part in enumerate(value)]
    return next((found for where, part in parts if (found := _half_pair(part, where)) is not None), None)


def line_of(row: Mapping[str, Any], number: int) -> bytes:
    """A row as a line of NDJSON. Numbers and lists of numpy are written as such, what is missing (nan, NA) as null.
    Raises InvalidArgument naming the row for what JSON cannot hold."""
    try:
        try:
            return _dump(row)
        except ValueError:
            return _dump(_plain_row(row))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"row {number} cannot be written as JSON: {unsendable(row, error)}") from error


def _dump(row: Any) -> bytes:
    return json_module.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain_value).encode() + b"\n"


def _plain_value(value: Any) -> Any:
    """A value of numpy or pandas as Python has it. Neither is loaded for that."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    for convert in ("tolist", "item"):
        if type(value).__module__.startswith("numpy") and hasattr(value, convert):
            return getattr(value, convert)()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _plain_row(value: Any) -> Any:
    """The same with null in place of every nan."""
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, Mapping):
        return {name: _plain_row(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_row(part) for part in value]
    if value is None or isinstance(value, str | int):
        return value
    return _plain_row(_plain_value(value))
