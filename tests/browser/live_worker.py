"""A worker of online scores that is played: it takes requests out of the real queue and answers by rule, so that pages
meet the whole way but the model. A text with “good” makes a set more reliable by 0.125, one with “bad” less."""

from __future__ import annotations

import base64
import json
import threading
import time
from datetime import timedelta
from typing import Any

import redis
from django.utils import timezone

SIGNATURE = "played|rule:good|v:1"


def value_of(texts: list[str]) -> float:
    return 0.25 + 0.125 * sum(("good" in text) - ("bad" in text) for text in texts)


class PlayedWorker:
    """Answers from `start` to `kill`; `slow` seconds late. `asked` are the requests it has seen."""

    def __init__(self, url: str) -> None:
        self.client = redis.Redis.from_url(url, decode_responses=True)
        self.asked: list[dict[str, Any]] = []
        self.slow = 0.0
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        from evalapp.common.models import WorkerBeat

        # One beat that stays fresh for the whole test: the thread touches no database.
        fresh = timezone.now() + timedelta(hours=1)
        WorkerBeat.objects.update_or_create(
            name="played", defaults={"queues": ["live"], "pid": 1, "host": "here", "at": fresh}
        )
        self._end.clear()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """As a worker that is killed: its last beat is still fresh, and nobody answers."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        while not self._end.is_set():
            found = self.client.blpop(["live"], timeout=0.1)
            if found is None:
                continue
            number = json.loads(base64.b64decode(json.loads(found[1])["body"]))[0][0]
            asked = self.client.getdel(f"evalapp:live:{number}:ask")
            if asked is None:
                continue  # superseded, or nobody waits any more
            time.sleep(self.slow)
            request = json.loads(asked)
            self.asked.append(request)
            answer = f"evalapp:live:{number}:answer"
            self.client.rpush(answer, json.dumps(self._answer(request)))
            self.client.expire(answer, 10)

    @staticmethod
    def _answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["kind"] == "sets":
            return {"signature": SIGNATURE, "values": [value_of(texts) for texts in request["sets"]]}
        present, text = request["references"], request["text"].strip()
        return {
            "signature": SIGNATURE,
            "now": value_of(present) if present else None,
            "with_text": value_of([*present, text]) if text else None,
            "candidates": [value_of([*present, each]) for each in request["candidates"]],
            "left": 0,
            "notes": [],
        }
