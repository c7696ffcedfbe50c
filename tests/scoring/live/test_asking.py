"""Lanes: among requests from the same person for the same task, only the latest needs an answer. Redis is real, the
worker is simulated."""

from __future__ import annotations

import json
import threading
import time

import pytest
import redis

from evalapp.common.errors import Busy, TooMany, Unavailable
from evalapp.common.problems import wait_headers
from scoring.live import answering, asking
from scoring.live.asking import Place, Superseded, ask_key, ask_live
from scoring.live.bounds import TooLate
from tests.evalapp.common.conftest import wait_until

pytestmark = pytest.mark.server("redis")
REQUEST = {"kind": "sets", "source": {"slug": "rater"}}


@pytest.fixture
def client(redis_url, settings, monkeypatch) -> redis.Redis:
    settings.REDIS_URL = redis_url
    sent: list[str] = []
    monkeypatch.setattr(asking, "queue_has_worker", lambda queue: True)
    monkeypatch.setattr(asking, "_send", sent.append)
    found = redis.Redis.from_url(redis_url, decode_responses=True)
    found.flushdb()
    found.sent = sent  # type: ignore[attr-defined]
    return found


def in_thread(found: list, **rest) -> threading.Thread:
    def ask() -> None:
        try:
            found.append(ask_live(REQUEST, timeout=20, **rest))
        except (Superseded, Unavailable) as error:
            found.append(type(error))

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def test_later_request_releases_the_earlier_and_is_never_replaced_by_it(client, monkeypatch):
    outcomes: dict[str, list] = {"first": [], "second": [], "other": []}
    threads = [in_thread(outcomes["first"], place=Place("a", 17))]
    wait_until(lambda: len(client.sent) == 1)
    threads.append(in_thread(outcomes["other"], place=Place("b", 1)))
    wait_until(lambda: len(client.sent) == 2)
    threads.append(in_thread(outcomes["second"], place=Place("a", 18)))
    threads[0].join(timeout=10)
    assert outcomes["first"] == [Superseded]
    with pytest.raises(Superseded):
        ask_live(REQUEST, timeout=20, place=Place("a", 16))
    # The worker gets all three numbers and drops superseded ones unexecuted.
    wait_until(lambda: len(client.sent) == 3)
    executed: list[dict] = []
    monkeypatch.setattr(
        answering, "execute", lambda request, loading, check: executed.append(request) or {"values": [0.5]}
    )
    assert [answering.answer(number) for number in client.sent] == [False, True, True]
    for thread in threads:
        thread.join(timeout=10)
    assert outcomes["second"] == outcomes["other"] == [{"values": [0.5]}]
    assert executed == [REQUEST, REQUEST]
    assert not client.keys("evalapp:live:*:ask")
    assert not client.keys("evalapp:live:*:answer")


def test_answer_to_a_superseded_request_goes_to_nobody(client, monkeypatch):
    outcomes: list = []
    first = in_thread(outcomes, place=Place("a", 1))
    wait_until(lambda: len(client.sent) == 1)
    late: list = []

    def execute(request, loading, check):
        late.append(in_thread([], place=Place("a", 2)))
        first.join(timeout=10)
        return {"values": [0.1]}

    monkeypatch.setattr(answering, "execute", execute)
    assert answering.answer(client.sent[0])
    assert outcomes == [Superseded]
    wait_until(lambda: len(client.sent) == 2)
    client.rpush(asking.answer_key(client.sent[1]), json.dumps({"values": [0.2]}))
    late[0].join(timeout=10)
    assert not client.exists(asking.answer_key(client.sent[0]))


def test_unanswered_request_ends_at_its_time_limit(client):
    """The caller learns that the worker is busy and when to try again: nothing is down."""
    for state, said, wait in ((None, "busy with other requests", 2), ("loading sbr", "loading sbr", 10)):
        if state:
            client.set(asking.STATE_KEY, state)
        text = rf"No score within 0\.1 s\. The worker is {said}\. Try again in {wait} s"
        with pytest.raises(Busy, match=text) as caught:
            ask_live(REQUEST, timeout=0.1, place=Place("a", 1))
        assert wait_headers(caught.value) == {"Retry-After": str(wait)}
    assert not client.exists(ask_key(client.sent[0]))


def test_lanes_wait_longer_than_others_in_a_full_queue(client):
    client.rpush("live", *["x"] * asking.MOST_WAITING)
    with pytest.raises(Busy, match="32 requests for online scores are waiting"):
        ask_live(REQUEST, timeout=0.1)
    with pytest.raises(Unavailable, match="No score within"):
        ask_live(REQUEST, timeout=0.1, place=Place("a", 1))


def test_process_reuses_its_connections(client, monkeypatch):
    """The first request opens two connections, one to send and one to wait; later requests reuse them."""
    opened: list[str] = []
    connect = redis.connection.Connection._connect

    def counting(self):
        opened.append(self.host)
        return connect(self)

    monkeypatch.setattr(asking, "_send", lambda number: client.rpush(asking.answer_key(number), '{"values": [1]}'))
    assert ask_live(REQUEST, timeout=20) == {"values": [1]}
    monkeypatch.setattr(redis.connection.Connection, "_connect", counting)
    for _ in range(5):
        ask_live(REQUEST, timeout=20)
    assert opened == []
    asking.connect.cache_clear()
    ask_live(REQUEST, timeout=20)
    assert len(opened) == 2


def test_worker_stops_when_nobody_waits(client, monkeypatch):
    """The caller's time limit applies, not the worker's: the evaluator's progress callback ends the work."""
    ended: list = []

    def execute(request, loading, check):
        began = time.monotonic()
        try:
            while time.monotonic() < began + 20:
                time.sleep(0.01)
                check(1, 2)
        except TooLate:
            ended.append(time.monotonic() - began)
            raise
        return {}

    monkeypatch.setattr(answering, "execute", execute)
    outcome: list = []
    asking_thread = threading.Thread(target=lambda: outcome.append(given_up(0.5)))
    asking_thread.start()
    wait_until(lambda: len(client.sent) == 1)
    assert answering.answer(client.sent[0])
    assert ended[0] < 1
    asking_thread.join(timeout=10)
    assert outcome == [Busy]
    assert not client.exists(asking.answer_key(client.sent[0]))


def given_up(seconds: float) -> type[Exception] | None:
    try:
        ask_live(REQUEST, timeout=seconds)
    except (Unavailable, TooMany) as error:
        return type(error)
    return None


def test_one_person_leaves_capacity_for_others(client, monkeypatch):
    monkeypatch.setattr(asking, "MOST_OF_ONE_PERSON", 2)
    outcomes: list = []
    threads = [in_thread(outcomes, asker="7") for _ in range(2)]
    wait_until(lambda: len(client.sent) == 2)
    with pytest.raises(TooMany, match="already have 2 requests waiting") as refused:
        ask_live(REQUEST, timeout=20, asker="7")
    assert refused.value.extra["wait"] == 1
    with pytest.raises(Unavailable, match="No score within"):
        ask_live(REQUEST, timeout=0.1, asker="8")
    client.rpush(asking.answer_key(client.sent[0]), json.dumps({"values": [0.2]}))
    wait_until(lambda: len(outcomes) == 1)
    threads.append(in_thread(outcomes, asker="7"))
    wait_until(lambda: len(client.sent) == 4)
    for number in client.sent:
        client.rpush(asking.answer_key(number), json.dumps({"values": [0.2]}))
    for thread in threads:
        thread.join(timeout=10)
    assert len(outcomes) == 3
    assert not client.exists(asking.asker_key("7"))


def test_dead_waiter_releases_its_place_in_time(client, monkeypatch):
    monkeypatch.setattr(asking, "MOST_OF_ONE_PERSON", 1)
    client.zadd(asking.asker_key("7"), {"dead": int(time.time() * 1000) - 1})
    with pytest.raises(Unavailable, match="No score within"):
        ask_live(REQUEST, timeout=0.1, asker="7")
