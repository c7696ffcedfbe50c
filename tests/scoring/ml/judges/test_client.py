"""The client against a strict server: errors, limits, keys and addresses."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import threading
import time
from dataclasses import replace

import pytest

from scoring.ml.judges import TEMPLATES, Judge, Rubric, read_rating
from scoring.ml.judges import client as client_module
from scoring.ml.judges.client import read_answer, send_requests
from scoring.ml.judges.endpoint import Endpoint, EndpointError
from scoring.ml.types import Record
from tests.scoring.judge_server import KEY, run_judge_server

RUBRIC = Rubric("How fluent is the text?", 1, 5)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(client_module, "LONGEST_WAIT", 0.01)


def make_requests(n, model="tiny"):
    judge = Judge(model, RUBRIC, TEMPLATES["plain"])
    return [judge.make_request(Record(f"text {k} " + "x" * (k % 5))) for k in range(n)]


def make_endpoint(server, **rest):
    return Endpoint("fake", server.url, ("tiny",), key=lambda: KEY, **{"at_once": 4, "timeout": 5.0, **rest})


def send_all(endpoint, requests, check=lambda: None):
    result = []
    for outcomes in send_requests(endpoint, requests, check):
        result += outcomes
        for one in outcomes:
            one.settle()
    return result


def test_all_requests_are_answered_and_never_more_at_once_than_allowed():
    with run_judge_server(delay=0.02) as server:
        outcomes = send_all(make_endpoint(server), make_requests(20))
    assert len(outcomes) == 20
    assert all(one.answer and one.answer.model == "tiny-1" and one.answer.tokens for one in outcomes)
    assert server.most_at_once == 4
    assert server.faults == []


@pytest.mark.parametrize("trouble", [429, 500, 503, "cut"])
def test_passing_errors_are_repeated(trouble):
    with run_judge_server(script=[trouble, trouble]) as server:
        outcomes = send_all(make_endpoint(server), make_requests(3))
    assert all(one.answer is not None for one in outcomes)
    assert len(server.requests) == 5


def test_a_request_that_fails_for_good_has_a_reason_without_the_key():
    with run_judge_server(always=400) as server:
        (one,) = send_all(make_endpoint(server), make_requests(1))
    assert one.answer is None
    assert "400" in one.reason
    assert KEY not in one.reason
    assert len(server.requests) == 1


def test_a_slow_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(client_module, "ATTEMPTS", 2)
    with run_judge_server(always="slow") as server:
        (one,) = send_all(make_endpoint(server, timeout=1.0), make_requests(1))
        assert "1 seconds" in one.reason
        assert len(server.requests) == 2


def test_many_failures_in_a_row_end_the_run():
    with run_judge_server(always=400) as server, pytest.raises(EndpointError, match="in a row"):
        send_all(make_endpoint(server), make_requests(60))
    assert len(server.requests) < 30


def test_a_wrong_key_ends_the_run_and_is_shown_nowhere(caplog):
    caplog.set_level(logging.DEBUG)
    wrong = "sk-wrong-0123456789abcdef"
    with run_judge_server() as server:
        endpoint = replace(make_endpoint(server), key=lambda: wrong)
        with pytest.raises(EndpointError, match="401") as caught:
            send_all(endpoint, make_requests(3))
    assert wrong not in str(caught.value)
    assert wrong not in caplog.text
    assert wrong not in repr(endpoint)


def test_an_unknown_model_ends_the_run():
    with run_judge_server() as server, pytest.raises(EndpointError, match="models in JUDGE_ENDPOINTS"):
        send_all(make_endpoint(server), make_requests(3, model="huge"))


def test_an_answer_that_is_no_chat_completion_has_a_reason(monkeypatch):
    with run_judge_server() as server:
        monkeypatch.setattr(server, "answer", lambda body, what: {"choices": []})
        monkeypatch.setattr(client_module, "ATTEMPTS", 2)
        (one,) = send_all(make_endpoint(server), make_requests(1))
    assert "not a chat completion" in one.reason


def test_a_redirect_is_not_followed(monkeypatch):
    from tests.scoring import judge_server

    with run_judge_server() as other, run_judge_server(always=302) as server:
        send = judge_server.Handler.send
        monkeypatch.setattr(
            judge_server.Handler,
            "send",
            lambda self, status, content, **headers: send(
                self, status, content, **({"Location": f"{other.url}/chat/completions"} if status == 302 else headers)
            ),
        )
        with pytest.raises(EndpointError, match="302"):
            send_all(make_endpoint(server), make_requests(1))
    assert other.requests == []


def test_proxies_of_the_environment_are_not_contacted(monkeypatch):
    with run_judge_server() as proxy, run_judge_server() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        outcomes = send_all(make_endpoint(server), make_requests(2))
    assert all(one.answer for one in outcomes)
    assert proxy.requests == []


def test_an_answer_has_only_what_databases_store():
    """PostgreSQL refuses NUL, lone surrogates, NaN and infinite numbers in JSON."""
    infinity = float("inf")
    top = [{"token": "4", "logprob": 1e-7}, {"token": "\0", "logprob": -infinity}, {"token": "\ud800", "logprob": None}]
    choice = {
        "message": {"content": "4\0 \ud800"}, "finish_reason": "stop",
        "logprobs": {"content": [{"token": "4", "top_logprobs": top}]},
    }  # fmt: skip
    content = {"choices": [choice], "model": "m\0" * 200, "usage": {"prompt_tokens": 10**20, "completion_tokens": -1}}
    answer = read_answer(content, "asked")
    json.dumps(answer.as_json(), allow_nan=False, ensure_ascii=False).encode()
    assert "\0" not in answer.text + answer.model
    assert len(answer.model) == 200
    assert (answer.prompt_tokens, answer.completion_tokens) == (None, None)
    assert read_rating(answer, RUBRIC, by_probability=True).value == 4.0
    for number in (float("nan"), infinity):
        top[0]["logprob"] = number
        with pytest.raises(ValueError, match="log-probability"):
            read_answer(content, "asked")


def test_a_server_that_reports_no_model_answers_as_the_one_asked_for():
    with run_judge_server(model="") as server:
        (one,) = send_all(make_endpoint(server), make_requests(1))
    assert one.answer.model == "tiny"


class Stop(Exception):
    pass


def test_a_stop_before_the_first_request_sends_nothing(monkeypatch):
    """The caller stops while the thread is only starting."""
    begin = asyncio.set_event_loop
    monkeypatch.setattr(client_module.asyncio, "set_event_loop", lambda loop: (time.sleep(0.2), begin(loop)))

    def check():
        raise Stop

    with run_judge_server() as server:
        with pytest.raises(Stop):
            send_all(make_endpoint(server), make_requests(8), check)
        assert server.requests == []
    assert "judge-requests" not in {thread.name for thread in threading.enumerate()}


def test_answers_that_arrive_with_an_error_are_not_lost(monkeypatch):
    """The thread ends with an error between two looks of the caller."""
    monkeypatch.setattr(client_module, "MOST_FAILURES", 1)

    class LateQueue(queue.SimpleQueue):
        def get(self, *arguments, **rest):
            if self.empty():
                for thread in threading.enumerate():
                    if thread.name == "judge-requests":
                        thread.join()
                raise queue.Empty
            return super().get(*arguments, **rest)

    monkeypatch.setattr(client_module.queue, "SimpleQueue", LateQueue)
    outcomes = []
    with run_judge_server(always=400) as server:
        batches = send_requests(make_endpoint(server, at_once=1), make_requests(3), lambda: None)
        with pytest.raises(EndpointError, match="in a row"):
            outcomes.extend(one for batch in batches for one in batch)
    assert len(outcomes) == 1


def test_a_stop_cuts_requests_in_flight():
    with run_judge_server(always="slow") as server:

        def check():
            if len(server.requests) == 4:
                raise Stop

        with pytest.raises(Stop):
            send_all(make_endpoint(server, timeout=60.0), make_requests(8), check)
        # Each is answered after 30 seconds unless the client closes its connection.
        assert all(server.cuts.acquire(timeout=10) for _request in range(4))
        assert len(server.requests) == 4
    assert "judge-requests" not in {thread.name for thread in threading.enumerate()}


def test_a_place_is_free_only_when_the_answer_is_stored():
    """So a process that is killed repeats at most the requests in flight."""
    with run_judge_server() as server:
        batches = send_requests(make_endpoint(server), make_requests(12), lambda: None)
        unsettled = []
        while len(unsettled) < 4:
            unsettled += next(batches)
        time.sleep(0.3)
        assert len(server.requests) == 4
        for one in unsettled:
            one.settle()
        n = len(unsettled) + sum(len(batch) for batch in _settle_all(batches))
        assert n == 12


def _settle_all(batches):
    for outcomes in batches:
        for one in outcomes:
            one.settle()
        yield outcomes


def test_the_last_answer_ends_the_wait_for_others():
    """The caller would wait an hour for a further outcome."""
    with run_judge_server() as server:
        result = []

        def work():
            for outcomes in send_requests(make_endpoint(server), make_requests(6), lambda: None, wait=3_600):
                result.extend(outcomes)
                for one in outcomes:
                    one.settle()

        caller = threading.Thread(target=work, daemon=True)
        caller.start()
        caller.join(timeout=60)
        assert not caller.is_alive()
    assert len(result) == 6


@pytest.mark.parametrize(("many", "is_single"), [(16, True), (1, False)])
def test_answers_that_arrive_together_are_stored_one_after_the_other(monkeypatch, many, is_single):
    monkeypatch.setattr(client_module, "MANY", many)
    with run_judge_server() as server:
        sizes = []
        for outcomes in send_requests(make_endpoint(server, at_once=8), make_requests(8), lambda: None):
            sizes.append(len(outcomes))
            time.sleep(0.5 if len(sizes) == 1 else 0)  # all others arrive
            for one in outcomes:
                one.settle()
    assert sum(sizes) == 8
    assert (max(sizes) == 1) == is_single
