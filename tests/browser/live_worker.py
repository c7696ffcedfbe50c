"""A fake worker for live scores: it takes requests from the real queue and answers by a rule instead of a model. A text
with “good” raises the reliability of a reference set by 0.125, one with “bad” lowers it."""

from __future__ import annotations

import base64
import json
import threading
from datetime import timedelta
from typing import Any

import redis
from django.utils import timezone

SIGNATURE = "fake|rule:good|v:1"


def compute_reliability(texts: list[str]) -> float:
    return 0.25 + 0.125 * sum(("good" in text) - ("bad" in text) for text in texts)


class FakeWorker:
    """Answers requests from `start` to `kill`."""

    def __init__(self, url: str) -> None:
        self.client = redis.Redis.from_url(url, decode_responses=True)
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        from evalapp.common.models import WorkerBeat

        # One heartbeat that stays fresh for the whole test, because the thread does not use the database.
        fresh = timezone.now() + timedelta(hours=1)
        WorkerBeat.objects.update_or_create(
            name="fake", defaults={"queues": ["live"], "pid": 1, "host": "here", "at": fresh}
        )
        self._end.clear()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Stop answering, like a killed worker: the last heartbeat is still fresh."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        while not self._end.is_set():
            message = self.client.blpop(["live"], timeout=0.1)
            if message is None:
                continue
            number = json.loads(base64.b64decode(json.loads(message[1])["body"]))[0][0]
            body = self.client.getdel(f"evalapp:live:{number}:ask")
            if body is None:
                continue  # superseded or timed out
            key = f"evalapp:live:{number}:answer"
            self.client.rpush(key, json.dumps(self._answer(json.loads(body))))
            self.client.expire(key, 10)

    @staticmethod
    def _answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["kind"] == "sets":
            return {"signature": SIGNATURE, "values": [compute_reliability(texts) for texts in request["sets"]]}
        present, text = request["references"], request["text"].strip()
        return {
            "signature": SIGNATURE,
            "now": compute_reliability(present) if present else None,
            "with_text": compute_reliability([*present, text]) if text else None,
            "candidates": [compute_reliability([*present, each]) for each in request["candidates"]],
            "left": 0,
            "notes": [],
        }
