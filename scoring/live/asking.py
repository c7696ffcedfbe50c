"""The web side of online scores: enqueue the request, wait for the answer, give up in time. Imports no evaluator."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from evalapp.common.errors import BadInput, Busy, TooMany, Unavailable
from evalapp.common.queue import queue_has_worker

if TYPE_CHECKING:
    import redis

QUEUE, TASK = "live", "scoring.live"
#: With this many requests waiting, another would not be answered in time.
MOST_WAITING = 32
#: Limit for lanes, where most waiting requests are superseded and dropped at once.
MOST_WAITING_IN_LANES = 256
#: Waiting requests allowed per person, so that nobody blocks the others.
MOST_OF_ONE_PERSON = 8
#: Current long task of the worker, shown when a request times out.
STATE_KEY = "evalapp:live:state"
LANE_SECONDS = 30
#: Seconds until a retry, during a load and otherwise.
LOAD_WAIT, BUSY_WAIT = 10, 2
UNREACHABLE = gettext_noop("Online scores are unavailable: the queue cannot be reached. Is Redis running?")
#: Seconds without an answer after which Redis counts as down.
PATIENCE = 1.0

#: Enter the queue atomically. Refused if too many wait (returns their number) or if the lane has a later ticket (-1).
#: An older request of the lane is removed and its client notified.
_ENTER = """
local waiting = redis.call('LLEN', KEYS[1])
if waiting >= tonumber(ARGV[1]) then return waiting end
if KEYS[3] then
  local last = redis.call('HMGET', KEYS[3], 'ticket', 'number')
  if last[1] and tonumber(last[1]) > tonumber(ARGV[4]) then return -1 end
  redis.call('HSET', KEYS[3], 'ticket', ARGV[4], 'number', ARGV[5])
  redis.call('EXPIRE', KEYS[3], ARGV[6])
  if last[2] and redis.call('DEL', 'evalapp:live:' .. last[2] .. ':ask') == 1 then
    local answer = 'evalapp:live:' .. last[2] .. ':answer'
    redis.call('RPUSH', answer, '{"error": "superseded"}')
    redis.call('EXPIRE', answer, 10)
  end
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 0
"""


#: Take one of a person's places atomically; 0 if all are taken. Expired places are freed, because a client that died
#: while waiting does not give its place back.
_TAKE_PLACE = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
"""


class Superseded(Exception):
    """A later request of the same lane replaced this one."""


@dataclass(frozen=True)
class Place:
    """A place in a lane; only the request with the highest ticket is answered."""

    lane: str
    ticket: int


def ask_key(number: str) -> str:
    return f"evalapp:live:{number}:ask"


def answer_key(number: str) -> str:
    return f"evalapp:live:{number}:answer"


def asker_key(asker: str) -> str:
    return f"evalapp:live:asker:{asker}"


def lane_key(lane: str) -> str:
    return f"evalapp:live:lane:{lane}"


@lru_cache(maxsize=4)
def connect(url: str, patience: float = 10.0) -> redis.Redis:
    """Return the connection pool of an address; requests fail after `patience` seconds without an answer."""
    import redis

    return redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=patience, decode_responses=True)


def ask_live(
    request: Mapping[str, Any], *, timeout: float | None = None, place: Place | None = None, asker: str = ""
) -> dict[str, Any]:
    """Return the worker's answer to `{"kind", "source", "options", ...}` (see `answering`).

    Raises `Unavailable` if no worker serves the queue or Redis is down; `Busy` if too many requests wait or there is no
    answer within `timeout` seconds (default: the setting LIVE_TIMEOUT_MS); `TooMany` if this `asker` has too many
    waiting requests; `BadInput` if the evaluator refuses the request; `Superseded` if a later request took its place.
    """
    import redis

    seconds = settings.LIVE_TIMEOUT_MS / 1000 if timeout is None else timeout
    if not queue_has_worker(QUEUE):
        raise Unavailable(
            _("Online scores are unavailable: no worker serves the queue “live”. Start it with evalapp up.")
        )
    client, number = connect(settings.REDIS_URL, PATIENCE), uuid.uuid4().hex
    try:
        with _hold_place(client, asker, number, seconds):
            _enter(client, number, request, seconds, place)
            _send(number)
            # BLPOP sends nothing while it waits, hence the longer timeout.
            result = connect(settings.REDIS_URL, seconds + PATIENCE).blpop([answer_key(number)], timeout=seconds)
            if result is None:
                client.delete(ask_key(number))
                raise _too_late(client, seconds)
    except redis.exceptions.OutOfMemoryError as error:
        raise Unavailable(_("Online scores are unavailable: the queue is full. Give Redis more memory.")) from error
    except redis.RedisError as error:
        raise Unavailable(_(UNREACHABLE)) from error
    return _answer(json.loads(result[1]))


@contextmanager
def _hold_place(client: redis.Redis, asker: str, number: str, seconds: float) -> Iterator[None]:
    """Hold one of this person's places in the queue during the block; requests without an asker are not limited."""
    if not asker:
        yield
        return
    key, now, lasts = asker_key(asker), int(time.time() * 1000), int((seconds + PATIENCE) * 1000)
    if not client.eval(_TAKE_PLACE, 1, key, now, MOST_OF_ONE_PERSON, now + lasts, number, lasts):
        text = _(
            "You already have %(n)d requests waiting for online scores. Wait for an answer, or put several texts into "
            "one request."
        )
        raise TooMany(text % {"n": MOST_OF_ONE_PERSON}, wait=1)
    try:
        yield
    finally:
        client.zrem(key, number)


def _enter(client: redis.Redis, number: str, request: Mapping[str, Any], seconds: float, place: Place | None) -> None:
    keys = [QUEUE, ask_key(number)]
    most = MOST_WAITING
    arguments: list[Any] = [json.dumps(request), max(1, int(seconds * 1000))]
    if place is not None:
        keys.append(lane_key(place.lane))
        most = MOST_WAITING_IN_LANES
        arguments += [place.ticket, number, LANE_SECONDS]
    waiting: Any = client.eval(_ENTER, len(keys), *keys, most, *arguments)
    if waiting < 0:
        raise Superseded
    if waiting:
        text = _("%(n)d requests for online scores are waiting. Try again in %(wait)d s.")
        raise Busy(text % {"n": waiting, "wait": BUSY_WAIT}, wait=BUSY_WAIT)


def _send(number: str) -> None:
    from evalapp.celery import app

    try:
        app.send_task(TASK, args=[number], queue=QUEUE, retry=False)
    except Exception as error:
        # kombu passes on any error of its transport; each means that the queue is down.
        raise Unavailable(_(UNREACHABLE)) from error


def _too_late(client: redis.Redis, seconds: float) -> Busy:
    state: Any = client.get(STATE_KEY)
    wait = LOAD_WAIT if state else BUSY_WAIT
    why = _("The worker is %(state)s.") % {"state": state} if state else _("The worker is busy with other requests.")
    text = _("No score within %(seconds)g s. %(why)s Try again in %(wait)d s.")
    return Busy(text % {"seconds": seconds, "why": why, "wait": wait}, wait=wait)


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    if "error" not in body:
        return body
    if body["error"] == "superseded":
        raise Superseded
    if body["error"] == "bad-input":
        raise BadInput(body["detail"])
    raise Unavailable(body["detail"])
