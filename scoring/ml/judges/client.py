"""Send the requests of a judge to an OpenAI-compatible server, several at once.

The loop runs in a thread of its own, so that the caller may write to a database between answers. A request occupies its
place until the caller has stored its answer (`settle`): a process that is killed repeats at most `at_once` requests.
Only the configured address is contacted: no redirects, no proxies of the environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import random
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

import aiohttp

from evalapp.translation import gettext as _
from scoring.ml.judges.answers import LEAST_LOGPROB, Answer
from scoring.ml.judges.endpoint import Endpoint, EndpointError, Outcome
from scoring.ml.judges.requests import TOP, Request

#: Attempts for a request that may succeed later, and the longest wait between two, in seconds.
ATTEMPTS, LONGEST_WAIT = 6, 30.0
#: So many requests in a row that fail for good end the run.
MOST_FAILURES = 20
#: So many waiting outcomes add one to those that are stored together.
MANY = 16
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MOST_BYTES = 4_000_000
#: Characters of a model id that are stored.
MOST_OF_MODEL = 200


class _NoAnswer(Exception):
    """One request has no answer. `is_transient`: it may succeed later, after `wait` seconds if the server says so."""

    def __init__(self, reason: str, *, is_transient: bool, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.is_transient, self.wait = reason, is_transient, wait


def send_requests(
    endpoint: Endpoint, requests: Iterable[Request], check: Callable[[], None], *, wait: float = 0.25
) -> Generator[list[Outcome], None, None]:
    """Send `requests` to an `endpoint` and yield outcomes in lists as they arrive. The caller stores each list and
    settles its outcomes before the next.

    `check` is called every `wait` seconds and may raise to stop; closing the generator stops as well. Requests in
    flight are then cut. Raises `EndpointError` if the key or model is refused or nothing answers any more.
    """
    work = _Sender(endpoint, iter(requests))
    work.start()
    try:
        while True:
            check()
            outcomes = work.collect(wait)
            if outcomes:
                yield outcomes
            elif work.has_ended and work.error is not None:
                raise work.error
            elif work.has_ended:
                return
    finally:
        work.stop()


class _Sender(threading.Thread):
    def __init__(self, endpoint: Endpoint, requests: Iterator[Request]) -> None:
        super().__init__(daemon=True, name="judge-requests")
        self.endpoint, self.requests = endpoint, requests
        #: None is the end, which ends the wait for outcomes.
        self.outcomes: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self.error: Exception | None = None
        self.has_ended = False
        self.loop = asyncio.new_event_loop()
        self.n_failures = 0
        self._secret = ""
        # Created before the thread starts, so that a stop at once finds it.
        self._main = self.loop.create_task(self._work())

    def collect(self, wait: float) -> list[Outcome]:
        """Return one of the outcomes that have arrived, or more if many have, after at most `wait` seconds.

        Requests that are answered together are stored and sent one after the other, so their next answers arrive one
        after the other and wait for nothing. Stored together, they would stay together, and wait for each other in
        every round.
        """
        outcomes: list[Outcome] = []
        with contextlib.suppress(queue.Empty):
            while not self.has_ended and len(outcomes) < 1 + self.outcomes.qsize() // MANY:
                outcome = self.outcomes.get(timeout=0 if outcomes else wait)
                if outcome is None:
                    self.has_ended = True
                else:
                    outcomes.append(outcome)
        return outcomes

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._main)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001
            # Reported in the thread of the caller, without the request, whose headers have the key.
            self.error = error if isinstance(error, EndpointError) else EndpointError(self._hide(_explain(error)))
        finally:
            self.loop.close()
            self.outcomes.put(None)

    def stop(self) -> None:
        """Cut the requests in flight and wait for the end of the thread."""
        with contextlib.suppress(RuntimeError):  # the loop has been closed at its end
            self.loop.call_soon_threadsafe(self._main.cancel)
        self.join(timeout=5)

    async def _work(self) -> None:
        self._secret = self.endpoint.key()
        headers = {"Authorization": f"Bearer {self._secret}"} if self._secret else {}
        async with aiohttp.ClientSession(
            headers=headers, timeout=aiohttp.ClientTimeout(total=self.endpoint.timeout), trust_env=False,
            connector=aiohttp.TCPConnector(limit=self.endpoint.at_once), cookie_jar=aiohttp.DummyCookieJar(),
        ) as client:  # fmt: skip
            workers = [asyncio.create_task(self._send_all(client)) for _place in range(self.endpoint.at_once)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _send_all(self, client: aiohttp.ClientSession) -> None:
        for request in self.requests:
            answer, reason = None, ""
            try:
                answer = await self._send(client, request)
                self.n_failures = 0
            except _NoAnswer as error:
                reason = self._hide(error.reason)
                self.n_failures += 1
            stored = asyncio.Event()
            self.outcomes.put(Outcome(request, answer, reason, self._make_settle(stored)))
            if self.n_failures >= MOST_FAILURES:
                text = _("%(n)d requests in a row failed, the last one: %(why)s. Retry when the endpoint answers.")
                raise EndpointError(text % {"n": self.n_failures, "why": reason})
            await stored.wait()

    def _make_settle(self, stored: asyncio.Event) -> Callable[[], None]:
        def settle() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has been closed after an error
                self.loop.call_soon_threadsafe(stored.set)

        return settle

    async def _send(self, client: aiohttp.ClientSession, request: Request) -> Answer:
        for attempt in range(ATTEMPTS):
            try:
                return await self._send_once(client, request)
            except _NoAnswer as error:
                if not error.is_transient or attempt == ATTEMPTS - 1:
                    raise
                # Full jitter: requests that were refused together do not come back together.
                pause = random.uniform(0, min(LONGEST_WAIT, 0.5 * 2**attempt))
                await asyncio.sleep(max(pause, min(error.wait or 0.0, LONGEST_WAIT)))
        raise AssertionError("unreachable")

    async def _send_once(self, client: aiohttp.ClientSession, request: Request) -> Answer:
        began = time.monotonic()
        try:
            address = f"{self.endpoint.url}/chat/completions"
            async with client.post(address, json=request.body, allow_redirects=False) as reply:
                content = await _read_limited(reply)
        except TimeoutError as error:
            text = _("no answer within %(n)g seconds")
            raise _NoAnswer(text % {"n": self.endpoint.timeout}, is_transient=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _NoAnswer(_explain(error), is_transient=True) from error
        if reply.status in (401, 403, 404) or 300 <= reply.status < 400:
            raise EndpointError(self._hide(self._explain_refusal(request, reply.status, content)))
        if reply.status != 200:
            reason = _("the server answered %(status)d: %(why)s")
            facts = {"status": reply.status, "why": _find_message(content) or "-"}
            is_transient = reply.status in _TRANSIENT
            raise _NoAnswer(reason % facts, is_transient=is_transient, wait=_read_wait(reply.headers))
        try:
            return read_answer(json.loads(content), request.model, time.monotonic() - began)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise _NoAnswer(_("the server's answer is not a chat completion"), is_transient=True) from error

    def _explain_refusal(self, request: Request, status: int, content: bytes) -> str:
        text = _("The endpoint %(name)s answered %(status)d for the model %(model)s: %(why)s. Check the key, the address and the models in JUDGE_ENDPOINTS.")  # fmt: skip # noqa: E501
        facts = {"name": self.endpoint.name, "status": status, "model": request.model}
        return text % {**facts, "why": _find_message(content) or _("no reason given")}

    def _hide(self, text: str) -> str:
        """Remove the key, which servers repeat in messages, also in parts."""
        if not self._secret:
            return text
        text = text.replace(self._secret, "***")
        return text if len(self._secret) < 16 else text.replace(self._secret[:12], "***")


async def _read_limited(reply: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in reply.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise _NoAnswer(_("the server's answer is too long"), is_transient=False)
    return b"".join(parts)


def _explain(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__


def _find_message(content: bytes) -> str:
    """Return the message of an error document, at most 300 characters."""
    try:
        found: Any = json.loads(content)
        found = found.get("error", found)
        found = found.get("message", "") if isinstance(found, dict) else found
    except (ValueError, AttributeError, RecursionError):
        found = content[:300].decode("utf-8", "replace")
    return " ".join(str(found).split())[:300]


def _read_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, None if it is absent or a date."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.replace(".", "", 1).isdecimal() else None


def read_answer(content: Mapping[str, Any], model: str, seconds: float = 0.0) -> Answer:
    """Return the answer in the JSON of a chat completion; `model` is used if the server reports no model id. Raises
    ValueError, KeyError, TypeError or IndexError if it is none."""
    choice = content["choices"][0]
    message = choice["message"]
    logprobs = (choice.get("logprobs") or {}).get("content") or ()
    # Rounded before use, so that stored answers give the same scores.
    tokens = tuple(
        (
            _make_storable(one["token"]),
            {_make_storable(top["token"]): _read_logprob(top["logprob"]) for top in one["top_logprobs"][:TOP]},
        )
        for one in logprobs
    )
    usage = content.get("usage") or {}
    text = message.get("content")
    finish = _make_storable(choice.get("finish_reason") or "")
    if not isinstance(text, str | None):
        raise TypeError("content is not a text")
    return Answer(
        text=_make_storable(text or message.get("refusal") or ""),
        model=_make_storable(content.get("model") or model)[:MOST_OF_MODEL],
        finish=finish,
        refused=bool(message.get("refusal")) or finish == "content_filter",
        tokens=tokens,
        prompt_tokens=_read_count(usage.get("prompt_tokens")),
        completion_tokens=_read_count(usage.get("completion_tokens")),
        seconds=seconds,
    )


def _make_storable(value: Any) -> str:
    """Return a text without NUL and lone surrogates, which databases refuse."""
    return str(value).replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _read_logprob(value: Any) -> float:
    """Return a log-probability; servers write that of an impossible token as null, -Infinity or a large number."""
    number = LEAST_LOGPROB if value is None else float(value)
    if not number < 1:  # some servers round to slightly more than 0
        raise ValueError("not a log-probability")
    return round(max(number, LEAST_LOGPROB), 6)


def _read_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None
