"""A strict OpenAI-compatible server for tests: it refuses requests that the interface does not allow, and makes the
errors that a test asks for."""

from __future__ import annotations

import hashlib
import json
import math
import re
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

KEY = "sk-poison-6f2d0c51e8b94a7790"
MEMBERS = {"model", "messages", "max_tokens", "temperature", "logprobs", "top_logprobs", "response_format"}


def rate_by_length(prompt: str) -> int:
    """Rate the judged text from 1 to 5 by its length, so that tests know the rating."""
    text = re.findall(r"Text to be judged:\n<<<\n(.*?)\n>>>", prompt, re.S)[-1]
    return 1 + len(text) // 5 % 5


@dataclass
class JudgeServer:
    """`script` has for the n-th request a status (429, 500, ...), "cut", "slow", "words" (no JSON), "refuse", "bare"
    (no log-probabilities), "other" (another model id), or "" for an answer."""

    model: str = "tiny-1"
    key: str = KEY
    delay: float = 0.0
    script: list[Any] = field(default_factory=list)
    always: Any = ""
    rate: Callable[[str], Any] = rate_by_length
    spread: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    digests: Counter[str] = field(default_factory=Counter)
    #: Released for each "slow" request whose client closes the connection.
    cuts: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    most_at_once: int = 0
    url: str = ""
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, body: dict[str, Any]) -> Any:
        with self._lock:
            self.requests.append(body)
            self.digests[hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()] += 1
            n = len(self.requests) - 1
            return self.script[n] if n < len(self.script) else self.always

    def enter(self, change: int) -> None:
        with self._lock:
            self._now += change
            self.most_at_once = max(self.most_at_once, self._now)

    def find_fault(self, path: str, headers: Any, body: Any) -> str:
        if path != "/v1/chat/completions":
            return f"unknown path {path}"
        if self.key and headers.get("Authorization") != f"Bearer {self.key}":
            return "wrong key"
        if unknown := set(body) - MEMBERS:
            return f"unknown members {sorted(unknown)}"
        roles = [message["role"] for message in body["messages"]]
        if roles[:2] != ["system", "user"] or set(roles) - {"system", "user", "assistant"}:
            return f"unexpected roles {roles}"
        if any(not isinstance(message["content"], str) for message in body["messages"]):
            return "content must be a text"
        if body.get("top_logprobs", 0) > 20 or ("top_logprobs" in body and not body.get("logprobs")):
            return "top_logprobs needs logprobs and is at most 20"
        return ""

    def answer(self, body: dict[str, Any], what: Any) -> dict[str, Any]:
        prompt = body["messages"][1]["content"]
        value = self.rate(prompt)
        message: dict[str, Any] = {"role": "assistant", "content": str(value), "refusal": None}
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        if what == "words" or (what == "words-once" and len(body["messages"]) == 2):
            message["content"] = "I would say it is rather good."
        elif what == "refuse":
            message |= {"content": None, "refusal": "I cannot judge this text."}
        elif "response_format" in body:
            name = body["response_format"]["json_schema"]["schema"]["required"][0]
            message["content"] = json.dumps({name: value})
        if body.get("logprobs") and what not in ("bare", "refuse"):
            spread = 0.0 if value == 1 else self.spread
            top = [{"token": str(value), "logprob": math.log(1 - spread - 0.01), "bytes": None}]
            if spread:
                top.append({"token": "1", "logprob": math.log(spread), "bytes": None})
            top.append({"token": "Well", "logprob": math.log(0.01), "bytes": None})
            if what == "words":
                top = [{"token": "I", "logprob": math.log(0.9)}, {"token": "1", "logprob": math.log(0.1)}]
            choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
        tokens = sum(len(one["content"]) for one in body["messages"]) // 4
        return {
            "id": "x", "object": "chat.completion", "created": int(time.time()),
            "model": "other-2" if what == "other" else self.model, "choices": [choice],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 2, "total_tokens": tokens + 2},
        }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: JudgeServer

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_POST(self) -> None:
        self.owner.enter(1)
        try:
            self._answer()
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.owner.enter(-1)

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault = self.owner.find_fault(self.path, self.headers, body)
        if fault:
            self.owner.faults.append(fault)
            given = self.headers.get("Authorization", "")
            return self.send(401 if fault == "wrong key" else 400, {"error": {"message": f"{fault}: {given}"}})
        if body["model"] != "tiny":
            return self.send(404, {"error": {"message": f"no model {body['model']}"}})
        what = self.owner.take(body)
        time.sleep(self.owner.delay)
        if what == "cut":
            self.connection.close()
            return None
        if what == "slow" and select.select([self.connection], [], [], 30)[0]:
            # Nothing more is sent on a connection that waits for an answer: the client has closed it.
            self.owner.cuts.release()
            self.close_connection = True
            return None
        if isinstance(what, int):
            message = f"error {what} for {self.headers.get('Authorization')}"
            return self.send(what, {"error": {"message": message}}, **({"Retry-After": "0.01"} if what == 429 else {}))
        return self.send(200, self.owner.answer(body, what))

    def send(self, status: int, content: dict[str, Any], **headers: str) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_arguments: Any) -> None:
        pass


@contextmanager
def run_judge_server(**options: Any) -> Iterator[JudgeServer]:
    owner = JudgeServer(**options)
    handler = type("OwnHandler", (Handler,), {"owner": owner})
    server = _Server(("127.0.0.1", 0), handler)
    owner.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield owner
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def judge_server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    """A server that rates a text by its length, set by the administrator as the endpoint `fake`."""
    from evalapp.settings.judge_endpoints import read_endpoint
    from scoring.ml.judges import client

    monkeypatch.setattr(client, "LONGEST_WAIT", 0.01)
    monkeypatch.setenv("FAKE_JUDGE_KEY", KEY)
    with run_judge_server() as server:
        row = {
            "url": server.url, "models": ["tiny"], "key_env": "FAKE_JUDGE_KEY", "at_once": 4, "timeout": 5.0,
            "price_in": 1.0, "price_out": 10.0,
        }  # fmt: skip
        settings.JUDGE_ENDPOINTS = {"fake": read_endpoint("fake", row)}
        yield server
    assert server.faults == []
