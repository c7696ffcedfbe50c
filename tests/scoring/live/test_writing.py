"""The score next to the editor from a real live worker: available, killed while a person types, and back."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from annotation.services import hooks
from evalapp.common.queue import queue_has_worker
from tests.cast import make_cast
from tests.evalapp.common.conftest import wait_until
from tests.scoring.live_house import start
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.written import put_ream
from tests.writing import open_task_view, start_writing

pytestmark = pytest.mark.server("redis")
#: The time for a worker to start and load its libraries on a busy machine.
PATIENCE = 180


def test_killed_worker_costs_only_the_score(house, settings, tmp_path):
    cast = make_cast()
    put_ream(cast.project, tiny_encoder("bert", tmp_path / "encoder", layers=1))
    campaign = start_writing(cast, references=2, evaluator="rater", corpus="", options={"arms": ["scores"]})
    view = open_task_view(cast.annotator, campaign)
    client = Client()
    client.force_login(cast.annotator)
    tickets = iter(range(1, 10_000))

    def write(text: str) -> dict:
        body = {"ticket": next(tickets), "text": text}
        answer = client.post(
            reverse("scoring:live-score", args=[view.public]), json.dumps(body), content_type="application/json"
        )
        assert answer.status_code == 200
        assert answer.json()["ticket"] == body["ticket"]
        return answer.json()

    assert "no worker serves the queue “live”" in write("A first word.")["note"]
    worker = start(house, "live", "live")
    wait_until(lambda: queue_has_worker("live"), seconds=PATIENCE)
    wait_until(lambda: write("A first word.")["with_text"] is not None, seconds=PATIENCE)
    found = write("A first word and more.")
    assert found["now"] is not None
    assert found["note"] == ""
    texts = tuple(row.text for row in view.references)
    checked = hooks.predict_reliability(
        project=cast.project,
        evaluator="rater",
        item=view.task.unit.item,
        sets=[texts, (*texts, "A first word and more.")],
    )
    assert checked == hooks.Reliability((found["now"], found["with_text"]), found["signature"])

    settings.LIVE_TIMEOUT_MS = 300
    house.kill(worker)
    down = write("A first word and more, typed on.")
    assert (down["now"], down["with_text"]) == (None, None)
    assert down["note"].startswith("Score not available: ")
    settings.LIVE_TIMEOUT_MS = 2000
    start(house, "live", "live")
    wait_until(lambda: write("A first word and more.")["with_text"] is not None, seconds=PATIENCE)
    assert write("A first word and more.") | {"ticket": 0} == found | {"ticket": 0}
