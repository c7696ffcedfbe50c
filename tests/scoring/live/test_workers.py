"""Trainings and online scores by real workers: killed, cancelled, and both at once. They start once for the file; its
first test needs no worker of the live queue, its last one kills it."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
import redis
import torch

from evalapp.common.errors import BadInput, Unavailable
from evalapp.common.models import Run, RunLog
from evalapp.common.queue import cancel_run, queue_has_worker, retry_run
from scoring.live import asking
from scoring.models import CurvePoint, Evaluator
from scoring.pipelines.train import work_folder
from scoring.selectors.training import artefact_folder
from scoring.services.online import ask_evaluator
from scoring.services.training import TrainingOptions, start_training
from tests.evalapp.common.conftest import Installation, wait_until
from tests.scoring.live_house import start
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.training import checkpoints_in, train

pytestmark = [pytest.mark.slow, pytest.mark.server("redis"), pytest.mark.usefixtures("few_penalties")]

#: Never ends while a test looks.
LONG = {"epochs": 5000, "learning_rate": 1e-4}
#: The time for workers to start and load their libraries on a busy machine.
PATIENCE = 180


@pytest.fixture(scope="module")
def work(house: Installation) -> subprocess.Popen:
    """The worker of trainings."""
    return start(house, "work", "cpu,gpu")


@pytest.fixture(scope="module")
def live(house: Installation) -> subprocess.Popen:
    """The worker of online scores; it answers."""
    worker = start(house, "live", "live")
    wait_until(lambda: queue_has_worker("live"), seconds=PATIENCE)
    return worker


def read_state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def ask(project, *, seed: int = 13, **options) -> Run:
    asked = TrainingOptions("toy", options=options, folds=1, seed=seed)
    return start_training(project=project, options=asked, any_encoder=True)


def pair(text: str = "It says something more.") -> dict:
    return {"text": text, "context": ["Hello?"], "references": ["Something."]}


def warm(people, evaluator: Evaluator) -> bool:
    """Whether the live worker answers; the first calls may time out while it loads the model."""
    try:
        ask_evaluator(user=people.viewer, evaluator=evaluator.slug, request={"kind": "score", "pairs": [pair()]})
    except Unavailable:
        return False
    return True


def test_missing_worker_of_the_queue_is_reported_at_once(people):
    with pytest.raises(Unavailable, match="queue “live”"):
        ask_evaluator(user=people.viewer, evaluator="length", request={"kind": "score", "pairs": [pair()]})


def test_killed_training_ends_with_the_weights_of_an_uninterrupted_one(work, people, tmp_path):
    encoder = tiny_encoder("bert", tmp_path / "encoder", dropout=0.1)
    options = {"epochs": 60, "learning_rate": 1e-3, "encoder": encoder}
    # One thread each: with two, this process and the worker differed in the last digits.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        whole = train(people.project, folds=1, name="whole", options={**options, "frozen": False})
    finally:
        torch.set_num_threads(threads)
    run = ask(people.project, **options)
    wait_until(
        lambda: read_state(run) == Run.State.RUNNING and run.phase == "training" and run.done > 30, seconds=PATIENCE
    )
    wait_until(lambda: checkpoints_in(work_folder(run)))
    os.kill(int(run.worker.split(":")[1]), signal.SIGKILL)
    wait_until(lambda: read_state(run) == Run.State.SUCCEEDED, seconds=PATIENCE)
    assert run.attempt == 2
    assert RunLog.objects.filter(run=run, text__contains="was lost").exists()
    killed = Evaluator.objects.get(run=run)
    weights = [(artefact_folder(found) / "model.safetensors").read_bytes() for found in (whole, killed)]
    assert weights[0] == weights[1]
    assert CurvePoint.objects.filter(run=run).exists()


def test_cancelling_takes_effect_and_retry_continues(work, people, tmp_path):
    run = ask(people.project, encoder=tiny_encoder("bert", tmp_path / "encoder"), **LONG)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 50, seconds=PATIENCE)
    wait_until(lambda: checkpoints_in(work_folder(run)))
    cancel_run(run=run)
    wait_until(lambda: read_state(run) == Run.State.CANCELLED)
    saved = max(int(path.name.rpartition("-")[2]) for path in checkpoints_in(work_folder(run)))
    assert not Evaluator.objects.filter(run=run).exists()
    retry_run(run=run)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 0, seconds=PATIENCE)
    assert run.done > saved
    cancel_run(run=run)
    wait_until(lambda: read_state(run) == Run.State.CANCELLED)


def test_live_scores_arrive_in_time_during_a_training(work, live, people, settings, tmp_path):
    evaluator = train(people.project, folds=2)
    run = ask(people.project, seed=7, encoder=tiny_encoder("bert", tmp_path / "encoder"), **LONG)
    settings.LIVE_TIMEOUT_MS = 2000
    wait_until(lambda: warm(people, evaluator), seconds=PATIENCE)
    first = ask_evaluator(user=people.viewer, evaluator=evaluator.slug, request={"kind": "score", "pairs": [pair()]})
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 0, seconds=PATIENCE)
    done = run.done
    for _ in range(20):
        answer = ask_evaluator(
            user=people.viewer, evaluator=evaluator.slug, request={"kind": "score", "pairs": [pair()] * 64}
        )
        assert answer["scores"] == first["scores"] * 64
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > done)
    assert answer["signature"] == evaluator.signature
    baseline = ask_evaluator(
        user=people.viewer, evaluator="length", request={"kind": "score", "pairs": [pair("one two three"), pair("")]}
    )
    # Three word tokens; an empty text gets the worst value, which is 0.
    assert baseline["scores"] == [3.0, 0.0]
    assert baseline["signature"].startswith("length|")
    cancel_run(run=run)


def test_unanswerable_requests_are_explained(house, live, people, settings):
    evaluator = train(people.project, folds=1)
    settings.LIVE_TIMEOUT_MS = 60_000
    answer = ask_evaluator(
        user=people.viewer, evaluator="token-f1", request={"kind": "score", "pairs": [{"text": "x"}]}
    )
    assert (answer["scores"], answer["reasons"]) == ([None], ["no references"])
    source = {"folder": evaluator.folder, "slug": evaluator.slug}
    with pytest.raises(BadInput, match="does not rate the reliability"):
        asking.ask_live({"kind": "reliability", "source": source, "options": {}, "context": [], "references": ["a"]})
    (artefact_folder(evaluator) / "card.md").unlink()
    os.utime(artefact_folder(evaluator) / "evaluator.json", (1, 1))
    with pytest.raises(Unavailable, match=r"card\.md missing"):
        ask_evaluator(user=people.viewer, evaluator=evaluator.slug, request={"kind": "score", "pairs": [pair()]})
    # Asleep, it answers nothing; abandoned requests are dropped, and nothing remains.
    os.killpg(live.pid, signal.SIGSTOP)
    settings.LIVE_TIMEOUT_MS = 300
    for _ in range(3):
        with pytest.raises(Unavailable, match=r"No score within 0\.3 s"):
            ask_evaluator(user=people.viewer, evaluator="length", request={"kind": "score", "pairs": [pair()]})
    client = redis.Redis.from_url(house.redis_url)
    assert not client.keys("evalapp:live:*")
    os.killpg(live.pid, signal.SIGCONT)
    settings.LIVE_TIMEOUT_MS = 20_000
    assert ask_evaluator(user=people.viewer, evaluator="length", request={"kind": "score", "pairs": [pair("one two")]})[
        "scores"
    ] == [2.0]
    assert not client.keys("evalapp:live:*:*")
    # A full queue is reported at once.
    house.kill(live)  # its last heartbeat is at most a few seconds old
    client.delete("live")
    client.rpush("live", *["x"] * asking.MOST_WAITING)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="32 requests for online scores are waiting"):
        ask_evaluator(user=people.viewer, evaluator="length", request={"kind": "score", "pairs": [pair()]})
    assert time.monotonic() - began < 10  # out of the twenty seconds to wait for an answer
