"""The asking side, in the web process: put the request where the worker finds it, wait for the answer, give up in time.
No evaluator is imported here."""

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

from evalapp.common.errors import BadInput, Busy, TooMany, Unavailable
from evalapp.common.queue import queue_has_worker

if TYPE_CHECKING:
    import redis

QUEUE, TASK = "live", "scoring.live"
#: With so many requests waiting, one more would not be answered in time either.
MOST_WAITING = 32
#: In lanes most of what waits was superseded, and is dropped in no time.
MOST_WAITING_IN_LANES = 256
#: Requests of one person that may wait: one after the other is answered, and others want an answer, too.
MOST_OF_ONE_PERSON = 8
#: What the worker is at when that takes long, for the message of a request that ran out of time.
STATE_KEY = "evalapp:live:state"
LANE_SECONDS = 30
#: When to ask again while it loads an evaluator, and while it is at the requests of others.
LOAD_WAIT, BUSY_WAIT = 10, 2
#: A Redis that is silent for longer is down.
PATIENCE = 1.0

#: Enter the queue, in one step: refused where too many wait (their number) or where the lane has a later ticket (-1);
#: what waits in the lane goes, and whoever waits for it is told.
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


#: Take one of the places that a person has, in one step: 0 where all are taken. Places of those who wait no longer go;
#: who died waiting gives none back.
_TAKE_PLACE = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
"""


class Superseded(Exception):
    """A later request of the same lane came: nobody needs this answer any more."""


@dataclass(frozen=True)
class Place:
    """A place in a lane: of its requests only the one with the highest ticket is worth an answer."""

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
    """One pool of connections for each address; a server that is silent for longer than `patience` seconds is down."""
    import redis

    return redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=patience, decode_responses=True)


def ask_live(
    request: Mapping[str, Any], *, timeout: float | None = None, place: Place | None = None, asker: str = ""
) -> dict[str, Any]:
    """The worker's answer to `{"kind", "source", "options", ...}` (see `answering`).

    Raises `Unavailable` when no worker serves the queue or Redis is down; `Busy` when too many wait already or the
    answer is not there within `timeout` seconds (the setting LIVE_TIMEOUT_MS); `TooMany` when so many requests of this
    `asker` wait already; `BadInput` when the evaluator refuses the request; `Superseded` when it had a place in a lane
    and a later request took it.
    """
    import redis

    seconds = settings.LIVE_TIMEOUT_MS / 1000 if timeout is None else timeout
    if not queue_has_worker(QUEUE):
        raise Unavailable("No worker serves the queue live, so there are no online scores. Start it: manage.py up")
    client, number = connect(settings.REDIS_URL, PATIENCE), uuid.uuid4().hex
    try:
        with _place_of(client, asker, number, seconds):
            _enter(client, number, request, seconds, place)
            _send(number)
            # BLPOP is silent as long as it waits.
            found = connect(settings.REDIS_URL, seconds + PATIENCE).blpop([answer_key(number)], timeout=seconds)
            if found is None:
                client.delete(ask_key(number))
                raise _too_late(client, seconds)
    except redis.exceptions.OutOfMemoryError as error:
        raise Unavailable("The queue is full, so there are no online scores. Give Redis more memory.") from error
    except redis.RedisError as error:
        raise Unavailable("The queue cannot be reached, so there are no online scores. Is Redis running?") from error
    return _answer(json.loads(found[1]))


@contextmanager
def _place_of(client: redis.Redis, asker: str, number: str, seconds: float) -> Iterator[None]:
    """One of the places that this person has in the queue, for as long as the block lasts; nobody's is not counted."""
    if not asker:
        yield
        return
    key, now, lasts = asker_key(asker), int(time.time() * 1000), int((seconds + PATIENCE) * 1000)
    if not client.eval(_TAKE_PLACE, 1, key, now, MOST_OF_ONE_PERSON, now + lasts, number, lasts):
        text = f"{MOST_OF_ONE_PERSON} of your requests wait for online scores already. Ask for the next when one of "
        raise TooMany(text + "them is answered, or put several texts into one request.", wait=1)
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
        text = f"The worker for online scores has {waiting} requests before this one. Try again in {BUSY_WAIT} s."
        raise Busy(text, wait=BUSY_WAIT)


def _send(number: str) -> None:
    from evalapp.celery import app

    try:
        app.send_task(TASK, args=[number], queue=QUEUE, retry=False)
    except Exception as error:
        # kombu raises what its transport raises; all of it means that the queue is down.
        raise Unavailable("The queue cannot be reached, so there are no online scores. Is Redis running?") from error


def _too_late(client: redis.Redis, seconds: float) -> Busy:
    state: Any = client.get(STATE_KEY)
    wait = LOAD_WAIT if state else BUSY_WAIT
    why = f"the worker, which answers one request after the other, is {state or 'busy with others'}"
    return Busy(f"No score within {seconds:g} s: {why}. Try again in {wait} s.", wait=wait)


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    if "error" not in body:
        return body
    if body["error"] == "superseded":
        raise Superseded
    if body["error"] == "bad-input":
        raise BadInput(body["detail"])
    raise Unavailable(body["detail"])
